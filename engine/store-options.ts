/**
 * What a store must be told of the options of its crawl before it is written: by the engine, and by commands that change
 * the store of a crawl that is not running, or the counts that some options ask for would not be kept. Main thread.
 */
import type { LinkCaps, LinkRules, ScopeMode } from '../storage/lmdb/admission.ts'
import { registrableDomainOf } from './core/domain.ts'
import { limits } from './core/limits.ts'
import type { CrawlOptions } from './core/options.ts'
import { keyPolicyOf, twinHostOf } from './core/url-key.ts'

interface ConfiguredStore {
  setScope(mode: ScopeMode, domainOf: (host: string) => string): void
  setTwins(twinOf: (host: string) => string | undefined): void
  setLinkRules(rules: Partial<LinkRules>): void
  setCaps(caps: Partial<LinkCaps>, storeBytesMax?: number): Promise<void>
}

export async function configureStore(store: ConfiguredStore, options: CrawlOptions, isExcluded: (host: string) => boolean = () => false): Promise<void> {
  store.setScope(options.scope, registrableDomainOf)
  if (keyPolicyOf(options.dedupe).www) store.setTwins(twinHostOf)
  store.setLinkRules({ isExcluded, priorityOf: options.priority, refusedReportedMax: options.shedLog === undefined ? 0 : limits.shedLinksReportedMax })
  await store.setCaps({
    queuedPerHostMax: options.maxQueuedPerHost, queuedPerDomainMax: options.maxQueuedPerDomain, queuedMax: options.maxQueued, domainBudget: options.domainBudget,
    queriesPerPathMax: options.traps === 'on' ? options.maxQueriesPerPath : Number.POSITIVE_INFINITY,
  }, options.maxStoreBytes)
}
