/**
 * The host limiter against simulated servers, on virtual time: which share is refused once it has settled, how long the
 * limit is within its band (from a fifth below the server's own limit to it), and pages a second. Seconds of work.
 *
 *     npm run bench:limiter -- [--seeds 20] [--requests 20000]
 *
 * Each figure is least / median / most over the seeds 1, 2, ...
 */
import { parseArgs } from 'node:util'
import { dice, type Dice } from '../engine/demo/random.ts'
import { Limiter } from '../engine/schedule/limiter.ts'
import { erring, limited, logNormal, rated, simulate, slowing, type Simulated, type SimulatedServer } from './simulated-server.ts'

const { values } = parseArgs({ options: { seeds: { type: 'string', default: '20' }, requests: { type: 'string', default: '20000' } } })
const [seeds, requests] = [Number(values.seeds), Number(values.requests)]
const bounds = { start: 4, floor: 1, ceiling: 32 }

interface Scene {
  readonly name: string
  readonly server: (random: Dice) => SimulatedServer
  readonly settleRequests: number
  /** The server's own limit at the end, if it has one. */
  readonly cap?: number
}

const turn = requests / 4
const scenes: readonly Scene[] = [
  ...[1, 3, 8, 20].map((cap) => ({ name: `429 above ${cap} at once`, server: (random: Dice) => limited(() => cap, random), settleRequests: 300, cap })),
  ...([[3, 8], [8, 3], [3, 20], [20, 3]] as const).map(([before, cap]) => ({
    name: `429 above ${before}, then ${cap}`, server: (random: Dice) => limited((seen) => (seen < turn ? before : cap), random), settleRequests: turn + 650, cap,
  })),
  ...[1.5, 5, 30].map((rate) => ({ name: `429 above ${rate}/s`, server: (random: Dice) => rated(rate, random), settleRequests: 300 })),
  ...[0.001, 0.01, 0.03].map((share) => ({ name: `503 to ${100 * share} % at random`, server: (random: Dice) => erring(share, random), settleRequests: 300 })),
  { name: 'latency rises above 4 at once', server: (random) => slowing(4, random), settleRequests: 500 },
  ...[0, 0.7, 1].map((sigma) => ({ name: `latency log-normal, sigma ${sigma}`, server: (random: Dice) => ({ serve: () => logNormal(random, 100, sigma) }), settleRequests: 500 })),
]

const columns: ReadonlyArray<readonly [name: string, of: (run: Simulated, scene: Scene) => number]> = [
  ['refused %', (run) => 100 * run.refusedShare],
  ['in band %', (run, { cap }) => (cap === undefined ? Number.NaN : 100 * run.timeShareOf(({ limit }) => limit >= 0.8 * cap && limit <= cap))],
  ['mean limit', (run) => run.meanLimit],
  ['paced %', (run) => 100 * run.timeShareOf(({ paceMs }) => paceMs > 0)],
  ['pages/s', (run) => run.pagesPerSecond],
]

function spread(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b)
  if (Number.isNaN(sorted[0])) return '-'
  return [sorted[0]!, sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!].map((value) => value.toFixed(value < 10 ? 2 : 1)).join(' / ')
}

console.log(`${''.padEnd(32)}${columns.map(([name]) => name.padStart(24)).join('')}`)
for (const scene of scenes) {
  const runs = Array.from({ length: seeds }, (_, i) => simulate(new Limiter(bounds), scene.server(dice(1_000 + i)), { requests, seed: i + 1, settleRequests: scene.settleRequests }).settled)
  console.log(`${scene.name.padEnd(32)}${columns.map(([, of]) => spread(runs.map((run) => of(run, scene))).padStart(24)).join('')}`)
}
