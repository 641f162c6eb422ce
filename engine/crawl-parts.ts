/**
 * The stages that the crawl loop sequences, as much of each as it asks of it: a stage may be played by another. Types only.
 */
import type { ParsePool } from '../threads/parse-pool.ts'
import type { SitemapThread } from '../threads/sitemap/thread.ts'
import type { Store } from '../storage/store.ts'
import type { CommitLoop } from './commit-loop.ts'
import type { BlockedOn } from './core/api-types.ts'
import type { Clock } from './core/clock.ts'
import type { CrawlOptions } from './core/options.ts'
import type { PageRecord } from './core/types.ts'
import type { Fetcher } from './fetch/fetcher.ts'
import type { Gateways } from './fetch/gateways.ts'
import type { DiskSpace } from './flow/disk-space.ts'
import type { Gate } from './flow/gate.ts'
import type { NearDuplicates } from './near-duplicates.ts'
import type { Host } from './schedule/host.ts'
import type { NetworkWatch } from './schedule/network-watch.ts'
import type { Recrawl } from './schedule/recrawl.ts'
import type { Scheduler } from './schedule/scheduler.ts'
import type { ShedLog } from './shed-log.ts'
import type { Suspects } from './suspects.ts'
import type { RobotsGate } from './web/robots.ts'

export interface CrawlParts {
  readonly store: Store
  readonly scheduler: Scheduler
  readonly fetcher: Pick<Fetcher, 'fetch' | 'isShortOfBytes' | 'stats'>
  /** Absent: all is fetched from the sites themselves. */
  readonly gateways?: Pick<Gateways, 'areWaitedFor' | 'of' | 'resume' | 'stats'>
  readonly network: NetworkWatch<Host>
  readonly robots: Pick<RobotsGate, 'ask' | 'check' | 'sitemapsOf' | 'verdictsOf'>
  readonly pool: Pick<ParsePool, 'collect' | 'fill' | 'isStuck' | 'rotateWarc' | 'slotsFree' | 'stats' | 'withdraw'>
  /** Absent: there are none to read. */
  readonly sitemaps?: Pick<SitemapThread, 'open'>
  readonly commits: CommitLoop
  readonly disk: Pick<DiskSpace, 'shortOf'>
  readonly gate: Pick<Gate, 'blockedOn' | 'bounds' | 'connectionsMax' | 'governor' | 'heldBytes' | 'isOwnFault' | 'memory' | 'opensAtMs'>
  readonly recrawl: Recrawl
  /** Absent: pages have no SimHash. */
  readonly nearDuplicates: NearDuplicates | undefined
  /** Pages that may have ended the process before. */
  readonly suspects: Pick<Suspects, 'hosts' | 'isEmpty' | 'next'>
  /** Absent: none is written. */
  readonly shedLog?: ShedLog | undefined
  readonly clock: Clock
  readonly options: CrawlOptions
  readonly events: {
    /** Somebody listens, so records must be made. */
    readonly areHeard: boolean
    page(record: PageRecord): void
    failed(record: PageRecord): void
    pressure(blockedOn: BlockedOn): void
  }
}
