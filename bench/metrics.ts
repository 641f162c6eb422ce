/**
 * What metrics cost: a page's way through all places with its observations, a look at `stats()`'s pressure, the look at a
 * hundred thousand hosts, and a scrape. Nothing is fetched. `npm run build && npm run bench:metrics`
 *
 * A page's cost is that of a loop over a million pages, 500 of them on their way at a time.
 */
import { noCounters } from '../engine/core/types.ts'
import { surveyHosts } from '../engine/flow/host-survey.ts'
import { Places } from '../engine/flow/places.ts'
import { PressureMeter } from '../engine/flow/pressure.ts'
import { Prometheus } from '../engine/flow/prometheus.ts'
import { pressureOf } from '../engine/pressure.ts'
import { newHost, Unit } from '../engine/schedule/host.ts'
import { Limiter } from '../engine/schedule/limiter.ts'

const PAGES = 1_000_000
const UNDER_WAY = 500
const HOSTS = 100_000
const ROUNDS = 5

/** Of so many rounds the median, milliseconds. */
function medianMs(body: () => void): number {
  return Array.from({ length: ROUNDS }, () => {
    const startMs = performance.now()
    body()
    return performance.now() - startMs
  }).toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]!
}

const clock = { nowMs: () => performance.now(), wallMs: () => Date.now(), after: () => () => {} }
const meter = new PressureMeter(clock.nowMs())
const places = new Places(clock)

/** As the stages do it: claimed, started, received, into a slot, parsed, to be stored, stored. */
function pass(sequence: number): void {
  places.enter(sequence)
  meter.queueAge.observe(0.2)
  places.move(sequence, 'fetch')
  meter.fetched({ ttfbMs: sequence % 300, totalMs: sequence % 500 })
  places.move(sequence, 'received')
  places.move(sequence, 'slots')
  meter.parse.observe(sequence % 20)
  places.move(sequence, 'commit')
  places.leave(sequence - UNDER_WAY)
}

const pageMs = medianMs(() => { for (let sequence = 0; sequence < PAGES; sequence += 1) pass(sequence) })
console.log(`a page through all places, with its observations: ${(pageMs / PAGES * 1e6).toFixed(0)} ns`)

const blockedMs = medianMs(() => { for (let look = 0; look < PAGES; look += 1) meter.blocked.found(look % 8 === 0 ? 'politeness' : 'nothing', look) })
console.log(`a look for another fetch: ${(blockedMs / PAGES * 1e6).toFixed(0)} ns`)

const hosts = Array.from({ length: HOSTS }, (_, index) => Object.assign(
  newHost({ name: `host-${index}.test`, unit: new Unit(`host-${index}.test`, 32), limiter: new Limiter({ start: 1 + index % 32, floor: 1, ceiling: 32 }) }),
  { health: index % 10 === 0 ? (index * 7919 % 1_000) / 1_000 : 1, startedAtMs: index * 7919 % 60_000 },
))
surveyHosts(hosts, 100_000)
const surveyMs = medianMs(() => void surveyHosts(hosts, 100_000))
console.log(`the worst of ${HOSTS.toLocaleString('en-US')} hosts: ${surveyMs.toFixed(1)} ms, at most once a second`)

const ring = { slots: 159, free: 100, filled: 20, taken: 1, done: 38, turns: 1, workersLost: 0, oldestFilledMs: 1, utilization: 0.5 }
const source = { parts: { clock, pool: { stats: () => ring }, scheduler: { places } } as never, meter }
const lookMs = medianMs(() => { for (let times = 0; times < 1_000; times += 1) pressureOf(source, [0.5]) })
console.log(`the pressure of stats(), without the ring's words: ${lookMs.toFixed(1)} µs`)

const survey = surveyHosts(hosts, 100_000)
const noneFull = { host_full: 0, domain_full: 0, queue_full: 0, store_full: 0 }
const stats = {
  ...noCounters, state: 'running', blockedOn: 'nothing', leased: 0, inFlight: 0, hosts: 0, retryShare: 0, networkDowns: 0, networkDownMs: 0, hostsUnhealthy: 0, hostsGivenUp: 0, hostsParked: 0, fetches: 0, commitLagMs: 0, challenged: 0, blocked: 0, shed: { isShedding: false, deferred: {}, dropped: noneFull, refused: noneFull }, loopUtilization: 0, workersLost: 0,
  linksDroppedKnown: 0, durability: 'commit', bounds: [{ name: 'slots', unit: 'items', used: 1, limit: 2, max: 2, derivedFrom: 'its size' }], residentBytes: 0, elapsedMs: 0, pressure: pressureOf(source, [0.5]),
  store: { commits: 0, rowsWritten: 0, linksKnown: 0, linksLookedUp: 0, linksNew: 0, bytesUsed: 0, fileBytes: 0 },
} as const
const prometheus = new Prometheus({ stats: () => stats, survey: () => survey, workerLoops: () => [{ busyMs: 1, idleMs: 1 }], meter, places })
await prometheus.text()
const scrapes: number[] = []
let bytes = 0
for (let times = 0; times < 200; times += 1) {
  const startMs = performance.now()
  bytes = (await prometheus.text()).length
  scrapes.push(performance.now() - startMs)
}
console.log(`a scrape of ${bytes.toLocaleString('en-US')} bytes, without that look: ${scrapes.toSorted((a, b) => a - b)[100]!.toFixed(2)} ms`)
