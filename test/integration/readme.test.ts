import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBed, type CrawlBed } from '../support/crawl.ts'
import { libraryUrl, run } from '../support/processes.ts'

const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
/** Files that a sample needs beside it, by name. */
const files = [...readme.matchAll(/```js file=(\S+)\n([^]*?)```/g)].map((match) => [match[1]!, match[2]!] as const)
const samples = [...readme.matchAll(/```js run\n([^]*?)```/g)].map((match) => match[1]!)

describe("the README's code", () => {
  let bed: CrawlBed
  let home: string

  beforeAll(async () => {
    bed = await openBed({ hosts: 3, pagesPerHost: 10, sizeScale: 0.1 })
    home = await mkdtemp(join(tmpdir(), 'sluice-readme-'))
    // The package as installed, except that its crawlers can reach the demonstration web, which needs no delay.
    const installed = join(home, 'node_modules', 'sluice')
    await mkdir(installed, { recursive: true })
    const { allowAddress, resolve, ca } = bed.options
    await writeFile(join(installed, 'package.json'), '{"name":"sluice","type":"module","exports":"./index.js"}')
    await writeFile(join(installed, 'index.js'), `
      import { Crawler as Real } from ${JSON.stringify(libraryUrl)}
      export * from ${JSON.stringify(libraryUrl)}
      export const Crawler = { open: (options) => Real.open({ delayMs: 0, ...options, ...${JSON.stringify({ allowAddress, resolve, ca })} }) }`)
  })
  afterAll(async () => {
    await bed.close()
    await rm(home, { recursive: true, force: true })
  })

  it('has samples', () => {
    expect([samples.length, files.length]).toEqual([4, 1])
  })

  it.each(samples.map((sample, index) => [index + 1, sample] as const))('sample %i runs as printed and sees pages', async (index, sample) => {
    const dir = join(home, `sample-${index}`)
    await mkdir(dir)
    for (const [name, text] of files) await writeFile(join(dir, name), text)
    const file = join(dir, 'sample.mjs')
    await writeFile(file, sample.replaceAll("'https://example.com/'", JSON.stringify(bed.web.seeds[0])).replaceAll("'./crawl'", JSON.stringify(join(dir, 'crawl'))))
    const process = run([file])
    expect((await process.ended).code, process.output.stderr).toBe(0)
    expect(process.output.stdout).toContain(bed.web.seeds[0])
    if (sample.includes('requeue')) expect(process.output.stdout).toMatch(/requeued: [1-9]\d*, refetched: [1-9]/)
    if (sample.includes('extract')) expect(process.output.stdout).toMatch(/headline: '[^']+', words: \d+, external: \d+/)
  })
})
