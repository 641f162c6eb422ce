/**
 * From the links of a document to the outlinks of a page: resolved, bounded, distinct, filtered, and those refused
 * counted by reason. Runs in a parse worker; holds a bounded memory of host names, and touches nothing shared but the
 * scope and known tables, which it only reads. The order of the rules is the order of their cost.
 */
import { registrableDomainOf } from '../../engine/core/domain.ts'
import { limits } from '../../engine/core/limits.ts'
import { refusalReasons, type Known, type LinkList, type RefusalReason } from '../../engine/core/types.ts'
import { fingerprintOf, hostHashOf, hostOf, parseFetchUrl, urlKey } from '../../engine/core/url-key.ts'
import type { RawLink } from './read-html.ts'

export interface LinkRules {
  readonly include: readonly RegExp[]
  readonly exclude: readonly RegExp[]
  readonly scope?: { has(hash: Uint8Array): boolean; readonly mode: 'host' | 'domain' }
  readonly known?: Known
}

export type Refusals = Record<RefusalReason, number>

interface FoundLink {
  readonly url: string
  readonly fingerprint: Uint8Array
  readonly hostHash: Uint8Array
  readonly isRedirect: boolean
}

interface HostFacts {
  readonly hash: Uint8Array
  readonly inScope: boolean
}

const HOSTS_REMEMBERED_MAX = 4_096
const SCHEME = /^[\s\0]*([a-z][a-z0-9+.-]*):/i

export function noRefusals(): Refusals {
  return Object.fromEntries(refusalReasons.map((reason) => [reason, 0])) as Refusals
}

/** Why `parseFetchUrl` gave nothing. */
export function refusalOf(href: string, base: string): 'invalid' | 'scheme' | 'too_long' {
  const scheme = SCHEME.exec(href.slice(0, 64))?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') return 'scheme'
  if (href.length > limits.urlBytesMax) return 'too_long'
  if (!URL.canParse(href, base)) return 'invalid'
  return /^https?:$/.test(new URL(href, base).protocol) ? 'too_long' : 'scheme'
}

/** The address that the document's links are relative to: its first base element, when that is http(s). */
export function baseOf(documentUrl: string, base: string | undefined): string {
  return (base === undefined ? undefined : parseFetchUrl(base, documentUrl)?.href) ?? documentUrl
}

export class LinkCollector {
  readonly #rules: LinkRules
  readonly #hosts = new Map<string, HostFacts>()

  constructor(rules: LinkRules) {
    this.#rules = rules
  }

  /** `count`: distinct http and https addresses before any rule but the bounds. */
  collect(raw: readonly RawLink[], base: string, followLinks: boolean): { readonly links: LinkList; readonly refused: Refusals; readonly count: number } {
    const refused = noRefusals()
    const found: FoundLink[] = []
    const hrefs = new Set<string>()
    const keys = new Set<string>()
    for (const { href } of raw) {
      if (hrefs.has(href)) continue
      hrefs.add(href)
      const url = parseFetchUrl(href, base)
      if (url === undefined) {
        refused[refusalOf(href, base)] += 1
        continue
      }
      const key = urlKey(url)
      if (keys.has(key)) continue
      keys.add(key)
      const reason = this.#refusal(url, { followLinks, isOverCount: keys.size > limits.linksPerPageMax })
      if (reason !== undefined) {
        refused[reason] += 1
        continue
      }
      const fingerprint = fingerprintOf(key)
      if (this.#rules.known?.has(fingerprint) === true) continue
      found.push({ url: url.href, fingerprint, hostHash: this.#host(hostOf(url)).hash, isRedirect: false })
    }
    return { links: linkList(found), refused, count: keys.size }
  }

  /** The target of a redirect is a decision of its own; that its URL is known is for the commit to say, which sees the chain. */
  redirect(url: URL): { readonly links: LinkList; readonly refused: Refusals } {
    const refused = noRefusals()
    const reason = this.#refusal(url, { followLinks: true, isOverCount: false })
    if (reason !== undefined) refused[reason] += 1
    const found = { url: url.href, fingerprint: fingerprintOf(urlKey(url)), hostHash: this.#host(hostOf(url)).hash, isRedirect: true }
    return { links: linkList(reason === undefined ? [found] : []), refused }
  }

  #refusal(url: URL, { followLinks, isOverCount }: { followLinks: boolean; isOverCount: boolean }): RefusalReason | undefined {
    if (isOverCount) return 'too_many'
    if (!followLinks) return 'depth'
    if (!this.#host(hostOf(url)).inScope) return 'scope'
    const { include, exclude } = this.#rules
    if (exclude.some((pattern) => pattern.test(url.href))) return 'pattern'
    return include.length > 0 && !include.some((pattern) => pattern.test(url.href)) ? 'pattern' : undefined
  }

  /** A host that is out of scope may come into it (a seed is added), so only what is in scope is remembered. */
  #host(host: string): HostFacts {
    const remembered = this.#hosts.get(host)
    if (remembered !== undefined) return remembered
    const hash = hostHashOf(host)
    const { scope } = this.#rules
    const inScope = scope === undefined || scope.has(scope.mode === 'host' ? hash : hostHashOf(registrableDomainOf(host)))
    const facts = { hash, inScope }
    if (!inScope) return facts
    if (this.#hosts.size >= HOSTS_REMEMBERED_MAX) this.#hosts.clear()
    this.#hosts.set(host, facts)
    return facts
  }
}

function linkList(found: readonly FoundLink[]): LinkList {
  return {
    count: found.length,
    fingerprint: (index) => found[index]!.fingerprint,
    hostHash: (index) => found[index]!.hostHash,
    url: (index) => found[index]!.url,
    isRedirect: (index) => found[index]!.isRedirect,
  }
}
