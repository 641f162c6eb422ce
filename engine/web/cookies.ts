/**
 * The cookies of a crawl (RFC 6265), in memory only: a small jar for each site, which is a registrable domain, or a host
 * that is none. A cookie goes back to the host that set it, and with a Domain attribute to the hosts below that domain. Main thread;
 * touches no file, and nothing of it stands in a record, a log or a count.
 *
 *   #sites     { example.com -> jar, other.org -> jar, ... newest }     least recently used first; beyond the bounds it is forgotten
 *   jar        { example.com;/;session -> cookie, ... }                 in the order of creation; beyond the bound the first goes
 *
 * Invariants: a site's jar is never read for another site, so no Domain attribute reaches over a public suffix; whatever
 * servers send, there are at most `cookieSitesMax` jars of `cookiesPerSiteMax` cookies and `cookieJarBytesMax` bytes.
 *
 * Of tough-cookie it takes the grammar and the rules of matching, and not its CookieJar, as seen with 6.1.0: it has no
 * bounds; its store kept an entry for each of 1,000 paths whose cookies had been deleted; and it takes the time of the
 * system and counts a Max-Age from the last use, so that one of 60 s was still sent after 250 s. The only importer of tough-cookie.
 */
import { Cookie, defaultPath, domainMatch, pathMatch } from 'tough-cookie'
import type { Clock } from '../core/clock.ts'
import { registrableDomainOf } from '../core/domain.ts'
import { limits } from '../core/limits.ts'

interface KeptCookie {
  readonly name: string
  readonly value: string
  readonly domain: string
  /** Without a Domain attribute it goes to no other host. */
  readonly isHostOnly: boolean
  readonly path: string
  readonly isSecure: boolean
  /** Time of day; infinity: as long as the crawl is open. */
  readonly expiresAtMs: number
  readonly bytes: number
}

type Jar = Map<string, KeptCookie>

export interface CookiesOptions {
  readonly clock: Clock
  readonly sitesMax?: number
  readonly bytesMax?: number
}

export class Cookies {
  readonly #clock: Clock
  readonly #sitesMax: number
  readonly #bytesMax: number
  readonly #sites = new Map<string, Jar>()
  #bytes = 0

  constructor({ clock, sitesMax = limits.cookieSitesMax, bytesMax = limits.cookieJarBytesMax }: CookiesOptions) {
    this.#clock = clock
    this.#sitesMax = sitesMax
    this.#bytesMax = bytesMax
  }

  /** The value of the Cookie field for a request, longer paths first and then older cookies first (RFC 6265 section 5.4); undefined: there is none. */
  headerFor(url: URL): string | undefined {
    const site = registrableDomainOf(url.hostname)
    const jar = this.#sites.get(site)
    if (jar === undefined) return undefined
    this.#forgetExpired(jar)
    this.#use(site, jar)
    const fitting = [...jar.values()].filter((cookie) => isFor(cookie, url)).sort((a, b) => b.path.length - a.path.length)
    let field = ''
    for (const { name, value } of fitting) {
      const longer = `${field}${field === '' ? '' : '; '}${name}=${value}`
      if (longer.length <= limits.cookieHeaderBytesMax) field = longer
    }
    return field === '' ? undefined : field
  }

  /**
   * Takes the Set-Cookie fields of an answer; `headers`: name, value, name, value. What is malformed, too large or not the
   * host's to set is left out. Answers whether the site has another cookie now, or another value of one.
   */
  receive(url: URL, headers: readonly string[]): boolean {
    let hasChanged = false
    for (const text of setCookiesOf(headers)) {
      const cookie = readCookie(url, text, this.#clock.wallMs())
      if (cookie !== undefined && this.#keep(url, cookie)) hasChanged = true
    }
    return hasChanged
  }

  stats(): { readonly sites: number, readonly cookies: number, readonly bytes: number } {
    return { sites: this.#sites.size, cookies: [...this.#sites.values()].reduce((sum, { size }) => sum + size, 0), bytes: this.#bytes }
  }

  #keep(url: URL, cookie: KeptCookie): boolean {
    const site = registrableDomainOf(url.hostname)
    const jar: Jar = this.#sites.get(site) ?? new Map()
    this.#forgetExpired(jar)
    const key = `${cookie.domain};${cookie.path};${cookie.name}`
    const old = jar.get(key)
    if (url.protocol !== 'https:' && [...jar.values()].some((kept) => hides(cookie, kept))) return false
    const isOver = cookie.expiresAtMs <= this.#clock.wallMs()
    if (isOver) {
      this.#forget(jar, key)
    } else {
      // One that has the place of another keeps its turn (section 5.3, step 11).
      jar.set(key, cookie)
      this.#bytes += cookie.bytes - (old?.bytes ?? 0)
      if (jar.size > limits.cookiesPerSiteMax) this.#forget(jar, jar.keys().next().value!)
    }
    this.#use(site, jar)
    this.#evict()
    return old?.value !== (isOver ? undefined : cookie.value)
  }

  /** The site is now the most recently used; without a cookie it is none. */
  #use(site: string, jar: Jar): void {
    this.#sites.delete(site)
    if (jar.size > 0) this.#sites.set(site, jar)
  }

  #forget(jar: Jar, key: string): void {
    this.#bytes -= jar.get(key)?.bytes ?? 0
    jar.delete(key)
  }

  #forgetExpired(jar: Jar): void {
    const nowMs = this.#clock.wallMs()
    for (const [key, { expiresAtMs }] of jar) if (expiresAtMs <= nowMs) this.#forget(jar, key)
  }

  /** Forgets the sites that were not used for longest; the last one stays, since it is being used. */
  #evict(): void {
    for (const [site, jar] of this.#sites) {
      if (this.#sites.size === 1 || (this.#sites.size <= this.#sitesMax && this.#bytes <= this.#bytesMax)) return
      this.#sites.delete(site)
      for (const key of jar.keys()) this.#forget(jar, key)
    }
  }
}

/** The first of an answer's; more than a jar holds would only push each other out. */
function setCookiesOf(headers: readonly string[]): readonly string[] {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]!.toLowerCase() === 'set-cookie').slice(0, limits.cookiesPerSiteMax)
}

function isFor({ domain, isHostOnly, path, isSecure }: KeptCookie, { hostname, pathname, protocol }: URL): boolean {
  return (isHostOnly ? hostname === domain : domainMatch(hostname, domain, false) === true) && pathMatch(pathname, path) && (!isSecure || protocol === 'https:')
}

/** Whether one that came in clear text would be sent before or in the place of one that never does (RFC 6265bis section 5.7, "leave secure cookies alone"). */
function hides({ name, domain, path }: KeptCookie, kept: KeptCookie): boolean {
  return kept.isSecure && kept.name === name && pathMatch(path, kept.path) && (domainMatch(domain, kept.domain, false) === true || domainMatch(kept.domain, domain, false) === true)
}

/** What a host sets, as it is kept (section 5.3); undefined: it is no cookie, or not the host's to set. */
function readCookie({ hostname, pathname, protocol }: URL, text: string, nowMs: number): KeptCookie | undefined {
  // Before anything is parsed. With other characters it could not be sent back (RFC 9110 section 5.5).
  if (text.length > limits.cookieBytesMax || /[^\t\x20-\x7e\x80-\xff]/.test(text)) return undefined
  const cookie = Cookie.parse(text)
  if (cookie === undefined) return undefined
  const { key: name, value, secure: isSecure } = cookie
  const domain = cookie.domain ?? hostname
  const isHostOnly = cookie.domain === null
  const path = cookie.path ?? defaultPath(pathname)
  const site = registrableDomainOf(hostname)
  // Of the host itself or of a parent that is not above its site: a public suffix is.
  if (domainMatch(hostname, domain, false) !== true || domainMatch(domain, site, false) !== true) return undefined
  if (isSecure && protocol !== 'https:') return undefined
  // The prefixes of RFC 6265bis section 4.1.3.
  if (/^__Secure-/i.test(name) && !isSecure) return undefined
  if (/^__Host-/i.test(name) && !(isSecure && isHostOnly && cookie.path === '/')) return undefined
  const expiresAtMs = cookie.expiryTime(new Date(nowMs)) ?? Number.POSITIVE_INFINITY
  return { name, value, domain, isHostOnly, path, isSecure, expiresAtMs, bytes: text.length + limits.cookieOverheadBytes }
}
