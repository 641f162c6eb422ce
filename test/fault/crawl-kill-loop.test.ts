/**
 * Kills a crawl at random moments and judges what it ends with (bench/kill). KILLS=200 for a longer run; SEED repeats the
 * dice, though not where in its work each process is met.
 */
import { expect, test } from 'vitest'
import { killCrawl } from '../../bench/kill/killed-crawl.ts'

const kills = Number(process.env['KILLS'] ?? 15)
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31)

test(`after ${kills} kills a crawl has the whole web, each page once, and has asked no host too soon (SEED=${seed})`, async () => {
  const crawl = await killCrawl({ seed, kills, hosts: 12, pages: 48, delayMs: 600, lifeMsMax: 900, politeness: 'host', threads: 2, with503: false })
  expect(crawl.problems).toEqual([])
  expect(crawl.records).toBeGreaterThanOrEqual(48)
}, 60_000 + kills * 8_000)
