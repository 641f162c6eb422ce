/**
 * From the links of a document to the outlinks of a page: distinct, resolved, those that are known left out, the others
 * judged, and those refused counted by reason. Runs in a parse worker; holds bounded memories of hrefs and of host
 * names, and touches nothing shared but the scope, known and query tables, which it only reads.
 *
 *   bytes of an href -> hash -> met in this page?  -> met before and proven known? -> fingerprint ----------.
 *                                 | left out            | no: decode, resolve, key, SHA-256 -> fingerprint --+
 *                                                                                                           v
 *            outlink <- rules, in the order of their cost <- known? <- met in this page? <-------------------'
 *                       | refused by reason                   | left out  | left out
 *
 * Invariant: what is reported depends on the memories in one way only: a link that is queued or done may be left out.
 * So a link is asked for in the known table before any rule may refuse it, and `count` is the same with and without.
 * That is why a hit carries a fingerprint: the page's distinct addresses are counted by it.
 *
 * What it relies on: `RawLinks.href` depends on the bytes of the href and the document's encoding alone, but for `meta`,
 * where the address is a part of an attribute and the hash is not asked. And the bound: a page's first `linksPerPageMax`
 * distinct spellings of http(s) addresses are looked at; those after them are counted as `too_many` and cost a hash each.
 *
 * Measured over the 360 corpus pages (whole, 290 links a page), least of 12 visits to each, Node 20.20, on 2 cores that
 * others used (load 5), three runs with a URL parser of our own; microseconds a page, mean (median):
 *   nothing known before       443 to 716 (284 to 430), a third of it in the first pass
 *   all known and remembered    83 to 145 ( 34 to  61); of 73,031 strings 12,422 are made: path-relative, not ASCII, refused
 */
import { limits } from '../../engine/core/limits.ts'
import { fetchUrl, hostOfUrl, makeBase, refusalOf, type Base } from '../../engine/core/fetch-url.ts'
import { queryPathHash, trapOf } from '../../engine/core/traps.ts'
import { refusalReasons, type Known, type LinkList, type QueryCounts, type RefusalReason } from '../../engine/core/types.ts'
import { fingerprintOf, hostHashOf, keyOf, plainKeys, twinHostOf, type KeyPolicy } from '../../engine/core/url-key.ts'
import { namesUser } from '../../engine/core/url-text.ts'
import { wordAt } from '../../engine/core/word.ts'
import { DistinctKeys } from './distinct.ts'
import { encodeQuery } from './encodings.ts'
import { HrefHash } from './href-hash.ts'
import { HrefMemory, isRooted } from './href-memory.ts'
import type { RawLinks } from './html-facts.ts'

export interface LinkRules {
  readonly include: readonly RegExp[]
  readonly exclude: readonly RegExp[]
  /** With `domainOf` its names are registrable domains, else hosts. */
  readonly scope?: { has(hash: Uint8Array): boolean; readonly domainOf?: ((host: string) => string) | undefined }
  readonly known?: Known
  /** Default: no rule but those that always hold. */
  readonly keyPolicy?: KeyPolicy
  /** The rules against generated addresses; absent: they are off. */
  readonly traps?: { readonly queries: QueryCounts; readonly queriesPerPathMax: number }
  /** Links marked rel nofollow, ugc or sponsored are refused; default: they are counted and followed. */
  readonly obeysRel?: boolean
}

/** What a document says of all its links. */
export interface LinkedDocument {
  /** The URL that its links are relative to, see `baseOf`. */
  readonly base: string
  /** The base is of another origin than the document. */
  readonly isForeignBase: boolean
  /** Name in the Encoding standard, in lower case. */
  readonly encoding: string
  /** False: its links would be too deep. They are counted and none is reported. */
  readonly followLinks: boolean
  /** It asks that none of its links is followed, and that is obeyed. */
  readonly isNofollow?: boolean
  /** Addresses beside those in the document, absolute: they come first. */
  readonly more?: readonly string[]
}

export type Refusals = Record<RefusalReason, number>

export interface CollectedLinks {
  readonly links: LinkList
  readonly refused: Refusals
  /** Those left out because they are known. */
  readonly linksKnown: number
  /** Distinct http and https addresses by key, known ones and refused ones included; at most `linksPerPageMax`. */
  readonly count: number
  /** Those of `count` to which no link is without rel nofollow, ugc or sponsored. */
  readonly nofollowCount: number
  /** Distinct spellings of http and https addresses that name a user or a password. */
  readonly userinfo: number
}

/** What the first pass finds: the URL of each spelling, '' for one that the memory knows. Those from `nofollowAt` on are marked. */
interface Resolved {
  readonly urls: string[]
  readonly refused: Refusals
  nofollowAt: number
}

interface FoundLink {
  readonly url: string
  readonly fingerprint: Uint8Array
  readonly hostHash: Uint8Array
  readonly isRedirect: boolean
}

/** A document's links, and what their addresses depend on. */
interface LinkSource {
  readonly raw: RawLinks
  readonly base: Base | undefined
  readonly encoding: string
  /** Absent: nothing of this document is remembered. */
  readonly memory: HrefMemory | undefined
}

interface HostFacts {
  readonly hash: Uint8Array
  readonly inScope: boolean
}

/** What `words` holds of a spelling: its link's fingerprint, or its hash, with or without use for the memory. */
const HIT = 0
const MEMORABLE = 1
const PLAIN = 2

const HOSTS_REMEMBERED_MAX = 4_096
/** Spellings of a page that are told apart, refused ones such as `mailto:` included. Beyond it some are read twice. */
const SPELLINGS_MAX = 24_000

export function noRefusals(): Refusals {
  return Object.fromEntries(refusalReasons.map((reason) => [reason, 0])) as Refusals
}

/** The address that the document's links are relative to: its first base element, when that is http(s). */
export function baseOf(documentUrl: string, base: string | undefined): string {
  return (base === undefined ? undefined : fetchUrl(base, makeBase(documentUrl))) ?? documentUrl
}

/** Scheme, host and port of a fetch URL, as it stands there. */
export function originOf(url: string): string {
  return url.slice(0, url.indexOf('/', url.indexOf('//') + 2))
}

/** The address of a link, resolved, its query in the document's encoding; undefined when it is not http(s). */
export function linkUrl(raw: RawLinks, index: number, { base, encoding }: { readonly base: Base | undefined; readonly encoding: string }): string | undefined {
  return fetchUrl(encodeQuery(raw.href(index), encoding), base)
}

/** Of what is no document. */
export const noRawLinks: RawLinks = {
  count: 0, bytes: new Uint8Array(0), element: () => 'a', start: () => 0, end: () => 0, href: () => '', rel: () => undefined, isNofollow: () => false,
}

export class LinkCollector {
  readonly #rules: LinkRules
  readonly #keyPolicy: KeyPolicy
  readonly #hosts = new Map<string, HostFacts>()
  /** The host of the last link of the page in hand, and how URLs on it begin, slash included. */
  #lastHost: HostFacts | undefined
  #lastPrefix = ''
  readonly #hash = new HrefHash()
  readonly #memory: HrefMemory | undefined
  readonly #spellings = new DistinctKeys(SPELLINGS_MAX)
  readonly #fingerprints = new DistinctKeys(limits.linksPerPageMax)
  /** Of each spelling that is looked at: what it is, four words, and its URL unless it is a hit. */
  readonly #kinds = new Uint8Array(limits.linksPerPageMax)
  readonly #words = new Int32Array(4 * limits.linksPerPageMax)
  readonly #print = new Int32Array(4)
  /** Of the page in hand. */
  #userinfo = 0

  constructor(rules: LinkRules) {
    this.#rules = rules
    this.#keyPolicy = rules.keyPolicy ?? plainKeys
    this.#memory = rules.known === undefined ? undefined : new HrefMemory()
  }

  /** `onResolved` is called between the two passes, so that a profile can time them apart. */
  collect(raw: RawLinks, document: LinkedDocument, onResolved?: () => void): CollectedLinks {
    const resolved = this.#resolve(raw, document)
    onResolved?.()
    return this.#judge(resolved, document)
  }

  /** The target of a redirect is a decision of its own; that its URL is known is for the commit to say, which sees the chain. */
  redirect(url: string): { readonly links: LinkList; readonly refused: Refusals } {
    const refused = noRefusals()
    const host = this.#host(hostOfUrl(url))
    const reason = this.#refusal(url, host, true)
    if (reason !== undefined) refused[reason] += 1
    const found = { url, fingerprint: fingerprintOf(keyOf(url, this.#keyPolicy)), hostHash: host.hash, isRedirect: true }
    return { links: linkList(reason === undefined ? [found] : []), refused }
  }

  /**
   * First pass. A link that is marked comes after all that are not, whatever their order in the document: an address is
   * refused for its rel when no link of the page leads there without it.
   */
  #resolve(raw: RawLinks, document: LinkedDocument): Resolved {
    const resolved = { urls: [], refused: noRefusals(), nofollowAt: 0 }
    const memory = document.isForeignBase ? undefined : this.#memory
    const from = { raw, base: makeBase(document.base), encoding: document.encoding, memory }
    const nofollow: number[] = []
    this.#hash.begin(originOf(document.base), document.encoding)
    this.#spellings.begin()
    this.#userinfo = 0
    for (const url of document.more ?? []) this.#resolveMore(url, resolved)
    for (let index = 0; index < raw.count; index += 1) {
      if (raw.isNofollow(index)) nofollow.push(index)
      else this.#resolveLink(from, index, resolved)
    }
    resolved.nofollowAt = resolved.urls.length
    for (const index of nofollow) this.#resolveLink(from, index, resolved)
    return resolved
  }

  #resolveLink({ raw, base, encoding, memory }: LinkSource, index: number, { urls, refused }: Resolved): void {
    const { bytes } = raw
    const hash = this.#hash
    const [start, end] = [raw.start(index), raw.end(index)]
    const isWhole = raw.element(index) !== 'meta'
    if (isWhole) {
      hash.hash(bytes, start, end)
      if (!this.#spellings.add(hash.a, hash.b, hash.c, hash.d)) return
    }
    const at = urls.length
    if (at === limits.linksPerPageMax) {
      refused.too_many += 1
      return
    }
    const isMemorable = memory !== undefined && isWhole && hash.isAscii && isRooted(bytes, start, end)
    if (isMemorable && memory.find(hash, this.#words, 4 * at)) {
      this.#kinds[at] = HIT
      urls.push('')
      return
    }
    // One text for both: it is not decoded twice, and what is too long only as it would be requested is told as that.
    const text = encodeQuery(raw.href(index), encoding)
    const url = fetchUrl(text, base)
    if (url === undefined) {
      refused[refusalOf(text, base)] += 1
      return
    }
    // A spelling that names a user is counted on each page, so it is not remembered.
    const hasUser = namesUser(text, base)
    if (hasUser) this.#userinfo += 1
    this.#kinds[at] = isMemorable && !hasUser ? MEMORABLE : PLAIN
    if (this.#kinds[at] === MEMORABLE) this.#keepHash(4 * at)
    urls.push(url)
  }

  /** An address that is none of the document's. */
  #resolveMore(text: string, { urls, refused }: Resolved): void {
    const url = fetchUrl(text)
    if (url === undefined) refused[refusalOf(text)] += 1
    else if (urls.length === limits.linksPerPageMax) refused.too_many += 1
    else this.#kinds[urls.push(url) - 1] = PLAIN
  }

  #keepHash(at: number): void {
    const words = this.#words
    words[at] = this.#hash.a
    words[at + 1] = this.#hash.b
    words[at + 2] = this.#hash.c
    words[at + 3] = this.#hash.d
  }

  /** Second pass: key and fingerprint, then whether the link is new here, known, or refused. */
  #judge({ urls, nofollowAt, refused }: Resolved, { followLinks, isNofollow = false }: LinkedDocument): CollectedLinks {
    const { known, obeysRel = false } = this.#rules
    const [words, print] = [this.#words, this.#print]
    const found: FoundLink[] = []
    let [count, linksKnown, nofollowCount] = [0, 0, 0]
    this.#fingerprints.begin()
    this.#lastHost = undefined
    for (let index = 0; index < urls.length; index += 1) {
      const at = 4 * index
      if (this.#kinds[index] === HIT) {
        if (!this.#fingerprints.add(words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!)) continue
        count += 1
        linksKnown += 1
        if (index >= nofollowAt) nofollowCount += 1
        continue
      }
      const url = urls[index]!
      const fingerprint = fingerprintOf(keyOf(url, this.#keyPolicy))
      for (let word = 0; word < 4; word += 1) print[word] = wordAt(fingerprint, 4 * word)
      const isFirst = this.#fingerprints.add(print[0]!, print[1]!, print[2]!, print[3]!)
      if (isFirst) count += 1
      if (isFirst && index >= nofollowAt) nofollowCount += 1
      if (known?.has(fingerprint) === true) {
        if (isFirst) linksKnown += 1
        if (this.#kinds[index] === MEMORABLE) this.#memory!.put(words, at, print)
        continue
      }
      if (!isFirst) continue
      if (!followLinks) {
        refused.depth += 1
        continue
      }
      if (isNofollow || (obeysRel && index >= nofollowAt)) {
        refused.nofollow += 1
        continue
      }
      const host = this.#hostOf(url)
      const reason = this.#refusal(url, host, false)
      if (reason === undefined) found.push({ url, fingerprint, hostHash: host.hash, isRedirect: false })
      else refused[reason] += 1
    }
    return { links: linkList(found), linksKnown, refused, count, nofollowCount, userinfo: this.#userinfo }
  }

  #refusal(url: string, host: HostFacts, isRedirect: boolean): RefusalReason | undefined {
    if (!host.inScope) return 'scope'
    const { include, exclude, traps } = this.#rules
    const trap = traps === undefined || isRedirect ? undefined : trapOf(url)
    if (trap !== undefined) return trap
    for (const pattern of exclude) if (pattern.test(url)) return 'pattern'
    if (include.length > 0 && !include.some((pattern) => pattern.test(url))) return 'pattern'
    if (traps === undefined || isRedirect) return undefined
    const path = queryPathHash(url)
    return path !== undefined && traps.queries.countOf(path) >= traps.queriesPerPathMax ? 'query_growth' : undefined
  }

  /** Most links of a page are to one host: then its name is not even cut out of the URL. */
  #hostOf(url: string): HostFacts {
    if (this.#lastHost !== undefined && url.startsWith(this.#lastPrefix)) return this.#lastHost
    this.#lastHost = this.#host(hostOfUrl(url))
    this.#lastPrefix = url.slice(0, url.indexOf('/', url.indexOf('//') + 2) + 1)
    return this.#lastHost
  }

  /** A host that is out of scope may come into it (a seed is added), so only what is in scope is remembered. */
  #host(host: string): HostFacts {
    const remembered = this.#hosts.get(host)
    if (remembered !== undefined) return remembered
    const hash = hostHashOf(host)
    const facts = { hash, inScope: this.#inScope(host, hash) }
    if (!facts.inScope) return facts
    if (this.#hosts.size >= HOSTS_REMEMBERED_MAX) this.#hosts.clear()
    this.#hosts.set(host, facts)
    return facts
  }

  /** With the rule `www` a host is in scope with its twin, as the commit has it too. */
  #inScope(host: string, hash: Uint8Array): boolean {
    const { scope } = this.#rules
    if (scope === undefined) return true
    if (scope.domainOf !== undefined) return scope.has(hostHashOf(scope.domainOf(host)))
    const twin = this.#keyPolicy.www ? twinHostOf(host) : undefined
    return scope.has(hash) || (twin !== undefined && scope.has(hostHashOf(twin)))
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
