/**
 * The kill loop: crawls of a demonstration web that are killed at random moments, started again by the same command, and
 * judged when they have completed. Prints each life, and every contradiction that was found; with one, it exits with 1.
 * A seed repeats the dice, not the machine: where in its work a process is met differs from run to run. Linux.
 *
 *     npm run bench:kill-loop -- [--rounds 200] [--seed 1] [--kills-per-crawl 20] [--option NAME=TEXT]... [--quiet]
 */
import { parseArgs } from 'node:util'
import { killCrawl, type GivenTexts } from './kill/killed-crawl.ts'

const { values } = parseArgs({ options: {
  rounds: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' }, 'kills-per-crawl': { type: 'string', default: '20' },
  option: { type: 'string', multiple: true, default: [] }, quiet: { type: 'boolean', default: false },
} })
const [rounds, killsPerCrawl] = [Number(values.rounds), Number(values['kills-per-crawl'])]
const more = Object.fromEntries(values.option.map((text) => text.split(/=(.*)/s).slice(0, 2))) as GivenTexts
/** Many pages in quick succession; and few, in longer lives, with a delay that is longer than a start takes. */
const webs = [{ hosts: 8, pages: 160, delayMs: 200, lifeMsMax: 2_500 }, { hosts: 24, pages: 72, delayMs: 3_000, lifeMsMax: 8_000 }] as const
const sums = { crawls: 0, kills: 0, records: 0, requests: 0, refetched: 0, setAside: 0 }
let problems = 0
for (let seed = Number(values.seed); sums.kills < rounds; seed += 1) {
  const found = await killCrawl({
    seed, kills: Math.min(killsPerCrawl, rounds - sums.kills), ...webs[seed % 4 === 1 ? 1 : 0]!,
    politeness: (['host', 'domain', 'ip'] as const)[seed % 3]!, threads: 1 + seed % 2, with503: seed % 8 === 0, more,
    ...(!values.quiet && { onLine: (line: string) => console.log(line) }),
  })
  for (const problem of found.problems) console.log(`WRONG: ${problem}`)
  problems += found.problems.length
  sums.crawls += 1
  for (const name of ['kills', 'records', 'requests', 'refetched', 'setAside'] as const) sums[name] += found[name]
  console.log(`seed ${seed}: complete after ${found.kills} kills; ${found.records} URLs, ${found.requests} requests, ${found.refetched} of them again because of kills, ${found.setAside} pages set aside; ${found.problems.length} wrong`)
}
console.log(`${sums.crawls} crawls, ${sums.kills} kills: ${sums.records} URLs each stored once, ${sums.requests} requests, ${(sums.refetched / sums.kills).toFixed(2)} pages fetched again per kill, ${sums.setAside} set aside as if they had ended the process; ${problems} wrong`)
process.exitCode = problems === 0 ? 0 : 1
