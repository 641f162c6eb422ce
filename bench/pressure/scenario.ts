/**
 * The words of a bad afternoon. A run has *steps*: `before`, one or more faults, `after`. Hosts are *concerned* by the
 * fault or *others*. A *claim* is what the run is judged by; see verdicts.ts. Types only.
 */
import type { Behaviour, DemoWebOptions, HostTally, SpawnedDemoWeb } from '../../engine/demo/index.ts'
import type { BlockedOn, Crawler, CrawlOptionsGiven } from '../../engine/index.ts'
import type { ParserMood } from './extractor.ts'

/** What a fault may take hold of. */
export interface Stage {
  readonly web: SpawnedDemoWeb
  readonly crawler: Crawler
  readonly concerned: readonly string[]
  readonly allHosts: readonly string[]
  /** Until `undo` of the step; of hosts it replaces what was set before. */
  behave(hosts: readonly string[], behaviour: Behaviour): Promise<void>
  setParser(mood: Partial<ParserMood>): void
  /** Another process holds the store's lock for writing. Resolves when it has it. */
  stallStore(forMs: number): Promise<void>
  /** Takes all room on the disk, or gives it back. */
  fillDisk(isFull: boolean): void
  /** No host of the web has a route, or all have it back. */
  cutNetwork(isCut: boolean): void
  /** The consumer asks for no page until it is let go. */
  holdConsumer(isHeld: boolean): void
  /** Of the gateway, if the scenario has one. */
  setGateway(rules: GatewayRules): Promise<void>
}

export interface GatewayRules {
  /** Requests at once; more are refused with 429. */
  readonly concurrentMax?: number
  /** The quota is spent: each request is answered with 402 and the moment of its reset. */
  readonly quotaResetsInMs?: number
}

export interface Fault {
  readonly name: string
  readonly seconds: number
  /** `forMs`: how long the step takes. */
  begin(stage: Stage, forMs: number): Promise<void> | void
  end?(stage: Stage): Promise<void> | void
}

export interface Claims {
  /** Most samples of the fault's second half name one of these. */
  readonly blockedOn?: readonly BlockedOn[]
  /** Others keep this share of their throughput during the faults. */
  readonly othersShareMin?: number
  /** So long after the fault's end these hosts are at 90 % of their throughput before. */
  readonly recovery?: { readonly of: 'all' | 'concerned'; readonly withinS: number }
  /** RssAnon and RssShmem together. */
  readonly ownMbMax: number
  /** Pages that may end with another outcome than `ok`. */
  readonly notOkMax?: number
  /** Tries after the first, as a share of all fetches during the faults. */
  readonly retryShareMax?: number
  /** By the name of a fault: the requests at once that the first concerned host, or the gateway, allows. */
  readonly ceilings?: Readonly<Record<string, number>>
  /** The limit of the first concerned host stays below, in the second half of the fault. */
  readonly limitMax?: number
  readonly more?: (evidence: Evidence) => readonly Verdict[]
}

export interface Scenario {
  readonly name: string
  readonly story: string
  readonly web?: DemoWebOptions
  readonly options?: CrawlOptionsGiven
  /** Whose behaviour the fault changes: so many hosts from the first on, a share of all by the seed, or every host. */
  readonly concerned: number | { readonly share: number } | 'all'
  /** Least time between two starts on a host, in the mean; a second by default. */
  readonly delayMs?: number
  /** Of the concerned hosts. */
  readonly concernedDelayMs?: number
  readonly needs?: readonly ('consumer' | 'smallDisk' | 'gateway')[]
  /** From the start to the first step, in seconds, at any scale. */
  readonly warmS?: number
  readonly beforeS?: number
  readonly faults: readonly Fault[]
  readonly afterS: number
  readonly claims: Claims
  /** The same run without the control in question. */
  readonly contrast?: { readonly label: string; readonly options?: CrawlOptionsGiven; readonly gatewayConcurrency?: string }
}

/** One look at a running crawl. Sums since the run began. */
export interface Sample {
  readonly atMs: number
  readonly pagesConcerned: number
  readonly pagesOthers: number
  readonly blockedOn: BlockedOn
  readonly inFlight: number
  /** Of the first concerned host, or of the gateway. */
  readonly limit: number
  readonly tally: HostTally
  readonly fetches: number
  readonly retries: number
  readonly ownBytes: number
  readonly bounds: Readonly<Record<string, { readonly used: number; readonly max: number }>>
  /** Milliseconds of the oldest item, by the stage. */
  readonly ages: Readonly<Record<string, number>>
}

export interface Step {
  readonly name: string
  readonly kind: 'before' | 'fault' | 'after'
  readonly fromMs: number
  readonly toMs: number
}

/** What a run leaves for its judges. */
export interface Evidence {
  /** What the delays of hosts allow: of those not concerned, or of all where all are. */
  readonly pace: { readonly of: 'all' | 'others'; readonly pagesPerSecond: number }
  readonly steps: readonly Step[]
  readonly samples: readonly Sample[]
  readonly counters: Readonly<Record<'discovered' | 'pending' | 'done' | 'failed' | 'dropped' | 'excluded', number>>
  /** Page records: all, and distinct URLs. */
  readonly records: number
  readonly recordUrls: number
  /** Pages of the web whose record has another outcome than `ok`, by code or outcome: the web answers each of them well at last. */
  readonly pagesNotOk: Readonly<Record<string, number>>
  /** Pages of the web without a record; all of them were given to the crawl. */
  readonly pagesWithoutRecord: number
  /** Of those: of hosts that are not concerned. */
  readonly othersWithoutRecord: number
  /** Pages without a record of which the server says that it has answered well. */
  readonly answeredWithoutRecord: number
  /** Records of good answers of which the server's log knows nothing. */
  readonly recordsWithoutAnswer: number
  /** What may have been under way when the run was stopped. */
  readonly underWayMax: number
  readonly workersLost: number
}

export interface Verdict {
  readonly name: string
  readonly isKept: boolean
  readonly text: string
}
