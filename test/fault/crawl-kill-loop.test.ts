/**
 * Kills a crawl at random moments and judges what it ends with (bench/kill). KILLS=200 for a longer run; SEED repeats the
 * dice, though not where in its work each process is met.
 */
import { expect, test } from 'vitest'
import { killCrawl } from '../../bench/kill/killed-crawl.ts'

const kills = Number(process.env['KILLS'] ?? 15)
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31)

test(`after ${kills} kills a crawl has the whole web, each page once, and has asked no host too soon (SEED=${seed})`, async () => {
  const crawl = await killCrawl({ seed, kills, hosts: 8, pages: 80, delayMs: 200, lifeMsMax: 1_200, politeness: 'host', threads: 2, with503: false })
  expect(crawl.problems).toEqual([])
  expect(crawl.records).toBeGreaterThanOrEqual(80)
}, 60_000 + kills * 8_000)
