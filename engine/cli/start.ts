/**
 * `npm start`: with arguments `sluice crawl ARGUMENTS`, without them a demonstration that needs nothing else. It starts
 * the demonstration web in a process of its own and crawls it over HTTPS by the command line's own way, into a fresh
 * temporary directory that is named at the end and stays.
 */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { spawnDemoWeb, type SpawnedDemoWeb } from '../demo/index.ts'
import { runCrawl, type CrawlCommand } from './crawl.ts'
import { reportError } from './lines.ts'
import { runProgram } from './program.ts'

/** A minute or two on two processors: about 100 pages a second were measured on them, the web's own work included. */
const demoWeb = { hosts: 48, pagesPerHost: 150, tls: true } as const

async function runDemo(): Promise<number> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-demo-'))
  const web = await spawnDemoWeb(demoWeb)
  try {
    process.stdout.write(`crawling the demonstration web: ${web.pages} pages on ${web.resolve.size} hosts, HTTPS, port ${web.port}, into ${dir}\n`)
    return await runCrawl(demoCommand(web, dir))
  } finally {
    await web.close()
  }
}

function demoCommand(web: SpawnedDemoWeb, dir: string): CrawlCommand {
  const ca = path.join(dir, 'ca.pem')
  fs.writeFileSync(ca, web.caPem)
  return {
    urls: web.seeds,
    crawl: {
      dir, ca, resolve: Object.fromEntries(web.resolve), allowAddress: ['127.0.0.0/8'], delayMs: 0, scope: 'any',
      // Whatever lies outside is not the demonstration's.
      include: [String.raw`^https://[^/]+:${web.port}/`],
    },
    run: {}, progress: 'auto', verbose: false, isDemonstration: true,
  }
}

const args = process.argv.slice(2)
try {
  process.exitCode = args.length > 0 ? await runProgram(['crawl', ...args]) : await runDemo()
} catch (error) {
  process.exitCode = reportError(error, false)
}
