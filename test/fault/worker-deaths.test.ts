/**
 * Each way in which a page can cost its worker its life, or nearly.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { TestClock, turn } from '../support/test-clock.ts'
import { openRig, pageOf, recordOf, smallPage, type PoolRig } from '../support/pool-rig.ts'

let rig: PoolRig
afterEach(() => rig.close())

/** An extractor that does something to the page whose address ends in /bad. */
function onBad(body: string): string {
  return `let turns = 0\nexport default async (page) => { if (page.url.endsWith('/bad')) { ${body} } return { id: page.url } }\n`
}

const bad = pageOf('http://site.example/bad', '<a href=/x>x</a>')

/** Two good pages about a bad one: the code of the bad one. */
async function codeOfBad(): Promise<string | undefined> {
  const [first, second, third] = [await rig.put(smallPage(1)), await rig.put(bad), await rig.put(smallPage(2))]
  await rig.until(() => rig.collected.length === 3)
  expect(rig.collected.map(({ ticket }) => ticket).sort((a, b) => a - b)).toEqual([first, second, third])
  expect([rig.outcomeOf(first), rig.outcomeOf(third)]).toEqual(['ok', 'ok'])
  expect(rig.pool.stats()).toMatchObject({ free: 16, filled: 0, taken: 0, done: 0 })
  return rig.outcomeOf(second)
}

describe('a page that ends its worker', () => {
  it('by process.exit is tried twice, then has the code parse_crashed', async () => {
    rig = await openRig({ extractor: onBad('process.exit(1)') })
    expect(await codeOfBad()).toBe('parse_crashed')
    expect(rig.lost.map(({ code }) => code)).toEqual(['parse_crashed', 'parse_crashed'])
    expect(rig.pool.stats().workersLost).toBe(limits.parseTriesMax)
  })

  it('by an exception outside of every promise has the code parse_crashed', async () => {
    rig = await openRig({ extractor: onBad("setTimeout(() => { throw new Error('late') }, 0); await new Promise(() => {})") })
    expect(await codeOfBad()).toBe('parse_crashed')
  })

  it('by filling the heap has the code parse_out_of_memory', async () => {
    rig = await openRig({ heapMb: 32, extractor: onBad('let kept; for (;;) kept = { kept }') })
    expect(await codeOfBad()).toBe('parse_out_of_memory')
  })

  it('in one worker only is read by the next', async () => {
    const dies = "const { existsSync, writeFileSync } = await import('node:fs'); const mark = new URL('mark', import.meta.url); if (!existsSync(mark)) { writeFileSync(mark, ''); process.exit(1) }"
    rig = await openRig({ extractor: onBad(dies) })
    expect(await codeOfBad()).toBe('ok')
    expect(rig.lost.length).toBe(1)
  })
})

describe('a page that hangs', () => {
  it.each([
    ['in a loop', 'for (;;);'],
    ['in a promise', 'await new Promise(() => {})'],
  ])('%s costs its worker its life at the deadline and has the code parse_timeout; time is the clock\'s', async (_where, body) => {
    const clock = new TestClock()
    rig = await openRig({ clock, deadlineMs: 10_000, extractor: onBad(body) })
    const ticket = await rig.put(bad)
    for (let tries = 1; tries <= limits.parseTriesMax; tries += 1) {
      // The clock stands still until the page is in a worker's hands; then it is moved past the deadline.
      while (rig.pool.stats().taken === 0) await turn()
      await clock.play(12_500)
      await rig.until(() => rig.lost.length === tries)
    }
    await rig.until(() => rig.collected.length === 1)
    expect(rig.outcomeOf(ticket)).toBe('parse_timeout')
    expect(clock.timersCount).toBe(0)
  })

  it('for less than the deadline costs nothing', async () => {
    const clock = new TestClock()
    rig = await openRig({ clock, deadlineMs: 10_000, extractor: onBad('const mark = new URL("go", import.meta.url); const { existsSync } = await import("node:fs"); while (!existsSync(mark)) await new Promise((r) => setImmediate(r))') })
    const ticket = await rig.put(bad)
    while (rig.pool.stats().taken === 0) await turn()
    await clock.play(9_000)
    expect(rig.lost).toEqual([])
    await rig.release('go')
    await rig.until(() => rig.collected.length === 1)
    expect(rig.outcomeOf(ticket)).toBe('ok')
  })
})

describe('a fault that is the page\'s or the extractor\'s own', () => {
  it('leaves the worker alive, and the links are reported', async () => {
    rig = await openRig({ extractor: onBad("throw new Error('no')") })
    expect(await codeOfBad()).toBe('extractor_failed')
    const page = rig.collected.find((one) => 'result' in one && one.result.code !== undefined)
    expect(page !== undefined && 'result' in page && page.result.links.count).toBe(1)
    expect(rig.lost).toEqual([])
  })

  it.each([
    ['a BigInt', 'return 1n'],
    ['a function', 'return () => 1'],
    ['a circle', 'const a = {}; a.a = a; return a'],
    ['more than the limit', `return 'x'.repeat(${limits.extractedBytesMax})`],
  ])('%s as a record is extractor_failed', async (_what, body) => {
    rig = await openRig({ extractor: onBad(body) })
    expect(await codeOfBad()).toBe('extractor_failed')
    expect(rig.lost).toEqual([])
  })
})

describe('a result larger than its place in the slot', () => {
  it('comes with the end of the turn, whole, and does not change the order', async () => {
    rig = await openRig({ extractor: onBad(`return { text: 'y'.repeat(${2 * limits.resultBytesInSlotMax}) }`) })
    expect(await codeOfBad()).toBe('ok')
    const record = recordOf(rig.collected[1]).record as { text: string }
    expect(record.text.length).toBe(2 * limits.resultBytesInSlotMax)
    expect(rig.collected.map(({ ticket }) => ticket)).toEqual([1, 2, 3])
  })

  it('of many links is whole', async () => {
    rig = await openRig({ maxBodyBytes: 256 * 1024 })
    const links = Array.from({ length: 5_000 }, (_, index) => `<a href="/${index}">x</a>`).join('')
    await rig.put(pageOf('http://site.example/', links))
    await rig.until(() => rig.collected.length === 1)
    const [page] = rig.collected
    if (page === undefined || !('result' in page)) throw new Error('no result')
    expect(page.result.links.count).toBe(5_000)
    expect(page.result.links.url(4_999)).toBe('http://site.example/4999')
  })
})

describe('a pool whose workers cannot begin any more', () => {
  it('gives the pages a code instead of waiting for ever', async () => {
    rig = await openRig({ extractor: `${onBad('process.exit(1)')}` })
    await rig.breakExtractor()
    const tickets = [await rig.put(bad), await rig.put(smallPage(1)), await rig.put(smallPage(2))]
    await rig.until(() => rig.collected.length === tickets.length)
    expect(tickets.map((ticket) => rig.outcomeOf(ticket))).toEqual(['parse_crashed', 'parse_crashed', 'parse_crashed'])
    expect(rig.pool.stats()).toMatchObject({ free: 16, turns: 0 })
  })
})
