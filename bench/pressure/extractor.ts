/**
 * A parser with a bad afternoon: the extractor of these crawls, whose slowness and deaths are switched by a file while
 * the crawl runs. It waits rather than works, so that a slow parser costs no other stage its processor. Parse worker.
 */
import { closeSync, openSync, readFileSync } from 'node:fs'

/** What the file says, as JSON. */
export interface ParserMood {
  /** Milliseconds that each page takes longer. */
  readonly pageMs: number
  /** A worker dies once in so many milliseconds, all workers together; 0: none does. */
  readonly deathEveryMs: number
}

export const moodFileVariable = 'SLUICE_PRESSURE_PARSER'

const lookMs = 50
const file = process.env[moodFileVariable]
const word = new Int32Array(new SharedArrayBuffer(4))
let mood: ParserMood = { pageMs: 0, deathEveryMs: 0 }
let lookedAtMs = Number.NEGATIVE_INFINITY

export default function extract(): undefined {
  if (file !== undefined && performance.now() - lookedAtMs > lookMs) {
    mood = JSON.parse(readFileSync(file, 'utf8')) as ParserMood
    lookedAtMs = performance.now()
  }
  if (mood.pageMs > 0) Atomics.wait(word, 0, 0, mood.pageMs)
  if (mood.deathEveryMs > 0 && isFirstIn(Math.floor(Date.now() / mood.deathEveryMs))) process.exit(1)
}

/** Whether no worker has died in this period: each leaves a mark beside the file. */
function isFirstIn(period: number): boolean {
  try {
    closeSync(openSync(`${file}.${period}`, 'wx'))
    return true
  } catch {
    return false
  }
}
