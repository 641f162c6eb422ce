/**
 * Opens the stages of one crawl and wires them: the one place where every constructor is called. It only wires.
 *
 * Invariant: what was opened is closed in the reverse order, by `close` or at once when a later one fails to open.
 * Main thread.
 */
import { access, statfs } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { acquireDir } from '../storage/control.ts'
import { KnownTable } from '../storage/known.ts'
import { openStore } from '../storage/lmdb/lmdb-store.ts'
import { QueryGrowth } from '../storage/query-growth.ts'
import type { CommitBatch, CommitResult } from '../storage/store.ts'
import { ParsePool } from '../threads/parse-pool.ts'
import { ScopeTable } from '../threads/scope-table.ts'
import { SitemapThread } from '../threads/sitemap/thread.ts'
import { scopeNameOf } from './add-urls.ts'
import { CommitLoop } from './commit-loop.ts'
import { systemClock, type Clock } from './core/clock.ts'
import { SluiceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import { crawlOptions, isFileContent, resolveCrawlOptions, storedOptions, type CrawlOptions, type CrawlOptionsGiven } from './core/options.ts'
import { keyPolicyOf, type KeyPolicy } from './core/url-key.ts'
import type { CrawlParts } from './crawl-parts.ts'
import { Events } from './events.ts'
import { ExcludedHosts } from './excluded-hosts.ts'
import { readHostList } from './host-list.ts'
import { createAddressGuard } from './fetch/address-guard.ts'
import { ByteBudget } from './fetch/byte-budget.ts'
import { Fetcher } from './fetch/fetcher.ts'
import { readGateways } from './fetch/gateway-file.ts'
import { readHostHeaders } from './fetch/host-headers-file.ts'
import { Gateways } from './fetch/gateways.ts'
import { createNameLookup, systemNameServices } from './fetch/name-lookup.ts'
import { Resolver } from './fetch/resolver.ts'
import { createTlsTrust } from './fetch/tls-context.ts'
import { DiskSpace, type FreeSpace } from './flow/disk-space.ts'
import { openFlow, type Flow } from './flow/flow.ts'
import { NearDuplicates } from './near-duplicates.ts'
import type { Belonging } from './schedule/host-loader.ts'
import type { Host } from './schedule/host.ts'
import { NetworkWatch } from './schedule/network-watch.ts'
import { Recrawl } from './schedule/recrawl.ts'
import { Scheduler } from './schedule/scheduler.ts'
import { configureStore } from './store-options.ts'
import { ShedLog } from './shed-log.ts'
import { StatusServer } from './listen.ts'
import { Suspects } from './suspects.ts'
import { Cookies } from './web/cookies.ts'
import { RobotsGate } from './web/robots.ts'
import { Session } from './web/session.ts'

/** What the stages tell the crawl loop. */
export interface StageEvents {
  readonly onWork: () => void
  readonly onCommitted: (batch: CommitBatch, result: CommitResult) => void
  readonly onFailed: (error: unknown) => void
  readonly onWorkerLost: (lost: { readonly warcFile?: number; readonly warcLength: number }) => void
}

export interface OpenedStages {
  readonly parts: CrawlParts
  readonly events: Events
  readonly scopeTable: ScopeTable
  readonly keyPolicy: KeyPolicy
  readonly isContinued: boolean
  readonly changedOptions: readonly string[]
  /** With `listen`. */
  readonly server: StatusServer | undefined
  onControl(handler: (request: unknown) => Promise<object>): void
  close(): Promise<void>
}

/** Closers of what was opened so far, run last first: all of them, whatever one of them throws. */
class Closers {
  readonly #closers: (() => Promise<void> | void)[] = []

  push(closer: () => Promise<void> | void): void {
    this.#closers.push(closer)
  }

  /** Rejects with the first failure, once all have run. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (const closer of this.#closers.splice(0).toReversed()) {
      try {
        await closer()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

export async function openStages(given: CrawlOptionsGiven, on: StageEvents): Promise<OpenedStages> {
  const closers = new Closers()
  try {
    return await openAll(given, on, closers)
  } catch (error) {
    await closers.close().catch(() => {
      // Why it could not be opened says more.
    })
    throw error
  }
}

async function openAll(given: CrawlOptionsGiven, on: StageEvents, closers: Closers): Promise<OpenedStages> {
  const dir = resolve(resolveCrawlOptions(given).dir)
  const lock = await acquireDir(dir, { waitMs: limits.lockWaitMs })
  closers.push(() => lock.close())
  const [shedLog, server] = [await openShedLog(given, closers), await openServer(given, closers)]
  const [known, queries] = [KnownTable.create(), QueryGrowth.create()]
  const store = await openStore(dir, { known, queries, durability: resolveCrawlOptions(given).durability })
  closers.push(() => store.close())
  const before = store.options()
  const options = resolveCrawlOptions(given, before)
  const keyPolicy = keyPolicyOf(options.dedupe)
  const excluded = await openExcluded(options, closers)
  const exempt = options.robots === 'obey' ? undefined : await readHostList('--robots', options.robots, 'obey, or a file of host names')
  await configureStore(store, options, excluded.has)

  const [clock, events] = [systemClock, new Events(dir)]
  const scopeTable = ScopeTable.create(limits.scopeNamesMax)
  for (const name of store.scope()) scopeTable.add(name)
  const suspects = Suspects.open(dir, store)
  closers.push(() => suspects.close())
  const flow = openFlow(options, clock)
  const pool = await openPool({ flow, inHandFile: suspects.notesFile, options, dir, store, known, queries, scopeTable })
  closers.push(() => pool.close())
  const { fetcher, gateways, resolver } = openNetwork({ options, flow, excluded, closers })
  const robots = new RobotsGate({
    fetcher, clock, userAgent: options.userAgent, deadlineMs: options.timeoutMs,
    readRobots: (file, productToken) => pool.readRobots(file, productToken),
    stored: (host) => store.host(host)?.robots, ...(exempt && { isExempt: (host) => exempt.has(host) }),
  })
  const scheduler = new Scheduler({
    store, options, clock, random: Math.random, onWork: on.onWork,
    isExcluded: excluded.has, unitOf: unitsBy(options, resolver, gateways), note: (update) => commits.noteHost(update), capsOf: (host) => gateways?.capsOf(host) ?? [],
  })
  if (gateways !== undefined) gateways.onRoom = (cap) => scheduler.wake(cap)
  excluded.onChange = () => scheduler.excludeListed()
  const network = new NetworkWatch<Host>({ clock, random: Math.random, hostsWorking: () => scheduler.sets.working.size, onChange: on.onWork })
  store.setLeases((host, sequence) => scheduler.isLeased(host, sequence))
  const onFull = (): void => {
    disk.noteFull()
    on.onWork()
  }
  const commits = new CommitLoop({
    store, clock, onCommitted: on.onCommitted, onFailed: on.onFailed, onFull,
    queueUrlsMax: () => flow.bounds.commitUrls.limit, commitBytesMax: flow.memory.commitBytes,
  })
  // Of a store that cannot be written the run was told.
  closers.push(() => storeHosts(scheduler, commits).catch(() => {}))
  Object.assign(pool, { onProgress: on.onWork, onWorkerLost: on.onWorkerLost, onDiskFailed: on.onFailed, onDiskFull: onFull } satisfies Partial<ParsePool>)
  const disk = new DiskSpace({
    clock, look: () => freeSpaceOf(dir), storeBytes: () => store.stats().bytesUsed, storeBytesMax: options.maxStoreBytes,
    onRoom: () => {
      commits.retry()
      pool.retry()
      on.onWork()
    },
  })
  closers.push(() => disk.stop())
  await disk.start()
  const gate = flow.openGate({ commits, fetcher, pool, onRoom: on.onWork })
  closers.push(() => gate.stop())

  await store.saveOptions(storedOptions(options))
  return {
    parts: {
      store, scheduler, fetcher, ...(gateways && { gateways }), network, robots, pool, sitemaps: openSitemaps(clock, closers), commits, disk, gate, suspects, shedLog, clock, options, events,
      recrawl: new Recrawl(options.recrawl, Math.random), nearDuplicates: wantsSimhash(options) ? new NearDuplicates() : undefined,
    },
    events, scopeTable, keyPolicy, isContinued: Object.keys(before).length > 0,
    changedOptions: changesOf(before, options), server,
    onControl: (handler) => lock.onRequest(handler),
    close: () => closers.close(),
  }
}

async function openExcluded({ excludeHosts: file }: CrawlOptions, closers: Closers): Promise<ExcludedHosts> {
  const excluded = await ExcludedHosts.open({
    file, clock: systemClock,
    onBroken: ({ message }) => process.emitWarning(`${message}; the hosts that were excluded stay so`, { code: 'SLUICE_EXCLUDE_HOSTS' }),
  })
  closers.push(() => excluded.close())
  return excluded
}

/** Its thread begins with the first sitemap. */
function openSitemaps(clock: Clock, closers: Closers): SitemapThread {
  const thread = new SitemapThread({ clock })
  closers.push(() => thread.close())
  return thread
}

async function openShedLog(given: CrawlOptionsGiven, closers: Closers): Promise<ShedLog | undefined> {
  const { shedLog: file } = resolveCrawlOptions(given)
  if (file === undefined) return undefined
  const log = await ShedLog.open(file, (error) => process.emitWarning(`the shed log ${file} cannot be written: ${String(error)}`, { code: 'SLUICE_SHED_LOG' }))
  closers.push(() => log.close())
  return log
}

/** Before the store, so that a port that is taken leaves nothing behind; behind the lock, since it may be its owner's. */
async function openServer(given: CrawlOptionsGiven, closers: Closers): Promise<StatusServer | undefined> {
  const { listen } = resolveCrawlOptions(given)
  if (listen === undefined) return undefined
  const server = await StatusServer.open(listen)
  closers.push(() => server.close())
  return server
}

async function freeSpaceOf(dir: string): Promise<FreeSpace> {
  const { bavail, blocks, bsize } = await statfs(dir)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

interface NetworkNeeds {
  readonly options: CrawlOptions
  readonly flow: Flow
  readonly excluded: ExcludedHosts
  readonly closers: Closers
}

/** What reaches the network, and the gateways before it when there are some. */
function openNetwork({ options, flow, excluded, closers }: NetworkNeeds): { readonly resolver: Resolver; readonly fetcher: Fetcher; readonly gateways?: Gateways } {
  const { allowAddress, ca, insecure, resolve: pins, userAgent } = options
  const [clock, guard, trust] = [systemClock, createAddressGuard(allowAddress), createTlsTrust({ ca, insecure })]
  const resolver = new Resolver({ lookup: createNameLookup(systemNameServices()), pins, clock })
  const { list: configs } = readGateways(options.gateway)
  const gateways = configs.length > 0 && { gateways: new Gateways({ configs, guard, trust, clock, random: Math.random, userAgent, pins }) }
  const session = new Session(readHostHeaders(options.hostHeaders), options.cookies ? new Cookies({ clock }) : undefined)
  const { onNoFiles, rates, socketsIdleMax } = flow
  const fetcher = new Fetcher({ resolver, guard, trust, budget: new ByteBudget(flow.memory.bodyBytes), clock, userAgent, rates, socketsIdleMax, onNoFiles, isExcluded: excluded.has, session, ...gateways })
  if (gateways) closers.push(() => gateways.gateways.close())
  closers.push(() => fetcher.close())
  return { resolver, fetcher, ...gateways }
}

interface PoolNeeds {
  readonly flow: Flow
  readonly inHandFile: string
  readonly options: CrawlOptions
  readonly dir: string
  readonly store: { readonly crawlId: string; readonly warcFileFirst: number }
  readonly known: KnownTable
  readonly queries: QueryGrowth
  readonly scopeTable: ScopeTable
}

async function openPool({ flow, inHandFile, options, dir, store, known, queries, scopeTable }: PoolNeeds): Promise<ParsePool> {
  const extractor = options.extract === undefined ? undefined : await extractorPath(options.extract)
  return ParsePool.open({
    threads: flow.workers, slots: flow.memory.slots, heapMb: flow.memory.workerHeapMb,
    maxBodyBytes: options.maxBodyBytes, clock: systemClock,
    worker: {
      known: known.memory, include: options.include, exclude: options.exclude, dedupe: options.dedupe, linkElements: options.linkElements, obey: options.obey, warcFileFirst: store.warcFileFirst,
      crawlId: store.crawlId, userAgent: options.userAgent, simhash: wantsSimhash(options), inHandFile,
      ...(options.scope !== 'any' && { scope: { table: scopeTable.memory, mode: options.scope } }),
      ...(options.traps === 'on' && { traps: { queries: queries.memory, queriesPerPathMax: options.maxQueriesPerPath } }),
      ...(options.format.includes('warc') && { warcDir: dir }),
      ...(extractor !== undefined && { extractor }),
    },
  })
}

/** To skip the links of near-duplicates is to look for them. */
function wantsSimhash({ simhash, nearDuplicates }: CrawlOptions): boolean {
  return simhash || nearDuplicates === 'skip'
}

async function extractorPath(given: string): Promise<string> {
  const path = given.startsWith('file:') ? fileURLToPath(given) : resolve(given)
  try {
    await access(path)
    return path
  } catch (cause) {
    throw new SluiceError('extractor_unloadable', `--extract ${given}: there is no such file`, { cause })
  }
}

/** Stores the rest of what was given, and what drifted of the hosts in memory, as many in one commit as are read in one turn. */
async function storeHosts(scheduler: Scheduler, commits: CommitLoop): Promise<void> {
  let noted = 0
  for (const update of scheduler.unstored()) {
    commits.noteHost(update)
    noted += 1
    if (noted % limits.hostsPerRefillMax === 0) await commits.flushLast()
  }
  await commits.flushLast()
}

/** How a host's politeness unit is found. A name that has no address is a unit of its own: its fetch will say why. */
function unitsBy(options: CrawlOptions, resolver: Resolver, gateways: Gateways | undefined): (host: string) => Belonging | Promise<Belonging> {
  const { politeness, maxPerAddress } = options
  if (politeness !== 'ip' && maxPerAddress === Number.POSITIVE_INFINITY) return (host) => scopeNameOf(host, politeness)
  return async (host) => {
    // A gateway looks the names up that go through it: here nobody is asked for them.
    const found = gateways?.of(host) === undefined ? await resolver.resolve(host) : undefined
    const address = found?.ok === true ? found.address : host
    return { unit: politeness === 'ip' ? address : scopeNameOf(host, politeness), address }
  }
}

function changesOf(before: Readonly<Record<string, unknown>>, options: CrawlOptions): readonly string[] {
  if (Object.keys(before).length === 0) return []
  return Object.entries(crawlOptions).filter(([, { stored }]) => stored).flatMap(([name, spec]) => {
    // What is not stored is at its default: it had no bound, or the crawl is older than the option.
    const [was, is] = [before[name] ?? spec.default, options[name as keyof CrawlOptions]].map(textOf)
    return was === is ? [] : [`${name}: ${was} -> ${is}`]
  })
}

/** No bound is none: JSON would write infinity as null. A function is not kept, nor is what belongs into a file of secrets, so they change what was stored each time. */
function textOf(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (isFileContent(value)) return 'an object'
  return value === Number.POSITIVE_INFINITY ? 'none' : JSON.stringify(value) ?? 'none'
}
