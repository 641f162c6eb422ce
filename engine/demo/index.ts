/**
 * The demonstration web: many hosts on loopback addresses, full of linked pages of realistic size, over HTTP or HTTPS.
 * It feeds `npm start`, `sluice web`, the tests and the benchmarks, with nothing else on the machine.
 *
 *   seed, URL -> site (layout, paths, links) -> bodies (pieces, filler | a folder) -> server -> request log
 */
export { faults, type Coding, type Fault, type Link, type Page } from './types.ts'
export type { Behaviour, HostTally } from './behaviours.ts'
export { numberOptions, type DemoWebOptions } from './options.ts'
export { Site, type SiteOptions } from './site.ts'
export { pageIn } from './changes.ts'
export { startDemoWeb, type DemoWeb, type RequestCounts } from './web.ts'
export { spawnDemoWeb, type SpawnedDemoWeb } from './spawn.ts'
export type { RequestEntry } from './request-log.ts'
