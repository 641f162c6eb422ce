/**
 * Starts a demonstration web in this process and stops it. This file only wires: the site says what there is, bodies
 * make bytes, listeners take connections, the server answers, the log counts.
 */
import { SluiceError } from '../core/errors.ts'
import { makeAuthority } from './authority.ts'
import { Behaviours, type Behaviour, type HostTally } from './behaviours.ts'
import { MadeBodies, type Bodies } from './bodies.ts'
import { CorpusBodies, readCorpusFolder } from './corpus-bodies.ts'
import { domains } from './layout.ts'
import { Listeners } from './listeners.ts'
import { resolveOptions, type DemoWebOptions, type ResolvedOptions } from './options.ts'
import { RequestLog } from './request-log.ts'
import { DemoServer } from './server.ts'
import { Site } from './site.ts'

/** What was asked of the web so far. */
export interface RequestCounts {
  readonly total: number
  /** By status; 0 counts requests that got no answer. */
  readonly byStatus: ReadonlyMap<number, number>
  /** Requests for a URL, its fragment aside. */
  count(url: string): number
}

export interface DemoWeb {
  /** Absolute URLs, with the port. */
  readonly seeds: readonly string[]
  /** Host name -> loopback address. */
  readonly resolve: ReadonlyMap<string, string>
  /** Certificate of the web's authority; '' without TLS. */
  readonly caPem: string
  readonly port: number
  /** Pages that can be reached and are allowed by robots.txt, faulty ones included. */
  readonly pages: number
  readonly site: Site
  readonly requests: RequestCounts
  /** Delay before each answer; may be set at any time. */
  latencyMs: number
  /** The edition that is served; may be set at any time. */
  edition: number
  /** How hosts of the web behave from now on; `{}` is well. */
  behave(hosts: readonly string[], behaviour: Behaviour): Promise<void>
  /** What was asked of each host so far; peaks start again. */
  takeTallies(): ReadonlyMap<string, HostTally>
  /** Writes what the log file still lacks. */
  flush(): void
  /** Ends all connections and frees the port; idempotent. */
  close(): Promise<void>
}

/** Throws `usage` for options out of range or a folder without pages, `port_in_use` for a port that is taken. */
export async function startDemoWeb(options: DemoWebOptions = {}): Promise<DemoWeb> {
  const resolved = resolveOptions(options)
  const folder = resolved.pagesDir === undefined ? undefined : readCorpusFolder(resolved.pagesDir)
  const hosts = folder === undefined || options.pagesPerHost !== undefined ? resolved.hosts : Math.min(resolved.hosts, folder.files.length)
  const firstHostPages = folder === undefined ? resolved.firstHostPages : 0
  const evenPages = firstHostPages === 0 ? hosts * resolved.pagesPerHost : firstHostPages + (hosts - 1) * resolved.pagesPerHost
  const pages = folder === undefined || options.pagesPerHost !== undefined ? evenPages : folder.files.length
  const listeners = await Listeners.open(hosts, resolved.port)
  try {
    const site = new Site({
      scheme: resolved.tls ? 'https' : 'http', port: listeners.port, hosts, pages, seed: resolved.seed, firstHostPages,
      faultShare: resolved.faultShare, sizeScale: resolved.sizeScale, changeShare: resolved.changeShare, goneShare: resolved.goneShare,
      bodies: folder === undefined ? 'made' : 'given',
    })
    const bodies: Bodies = folder === undefined ? await MadeBodies.open(site) : new CorpusBodies(site, folder)
    const authority = resolved.tls ? await makeAuthority(domains) : undefined
    const server = new DemoServer({ site, bodies, log: openLog(resolved), listeners, authority, behaviours: new Behaviours(resolved.seed) })
    server.latencyMs = resolved.latencyMs
    server.edition = resolved.edition
    return webOf(server)
  } catch (error) {
    await listeners.close()
    throw error
  }
}

function webOf(server: DemoServer): DemoWeb {
  const { site, log, listeners, authority, behaviours } = server.parts
  const resolve = new Map<string, string>()
  for (let host = 0; host < site.layout.hosts; host++) resolve.set(site.layout.hostName(host), listeners.addressOf(host))
  return {
    seeds: site.seeds(), resolve, caPem: authority?.caPem ?? '', port: listeners.port, pages: site.options.pages, site,
    requests: countsOf(site, log),
    get latencyMs() { return server.latencyMs },
    set latencyMs(delayMs: number) { server.latencyMs = delayMs },
    get edition() { return server.edition },
    set edition(edition: number) { server.edition = edition },
    async behave(hosts, behaviour) {
      behaviours.set(hosts, behaviour)
      const indexes = hosts.map((host) => site.layout.hostIndex(host)).filter((index) => index >= 0)
      await listeners.setRefusing(indexes, behaviour.connections === 'refused')
    },
    takeTallies: () => behaviours.take(),
    flush: () => log.flush(),
    async close() {
      await listeners.close()
      log.close()
    },
  }
}

function openLog({ logFile }: ResolvedOptions): RequestLog {
  try {
    return new RequestLog(logFile)
  } catch (error) {
    throw new SluiceError('usage', `--log: expected a file that can be written, given ${logFile}: ${(error as Error).message}`, { cause: error })
  }
}

function countsOf(site: Site, log: RequestLog): RequestCounts {
  return {
    get total() { return log.total },
    byStatus: log.byStatus,
    count(url) {
      const { hostname, pathname, search } = new URL(url)
      return log.countOf(site.pageAt(url), hostname, pathname + search)
    },
  }
}
