/**
 * What a host knows us by: the operator's header fields for its origin, and its cookies. Asked for every request, told of
 * every answer, for pages, robots.txt and sitemaps alike (a site behind a password has its robots.txt there too). Main thread.
 *
 * Invariant: fields are chosen by the very URL that is asked for, and a redirect is a request of its own, so nothing is
 * carried from one origin to another. An API that fetches pages for us is sent neither fields nor cookies; a proxy passes
 * what goes over http in clear text, so the operator's fields are not sent that way.
 */
import type { GatewayConfig } from '../core/gateway-config.ts'
import type { HostHeaders } from '../core/host-headers.ts'
import type { Cookies } from './cookies.ts'

/** What it goes through; undefined: nothing, it goes to the site itself. */
type Via = GatewayConfig['kind'] | undefined

export class Session {
  readonly #hostHeaders: HostHeaders
  readonly #cookies: Cookies | undefined

  /** Without `cookies`, none are kept. */
  constructor(hostHeaders: HostHeaders, cookies?: Cookies) {
    this.#hostHeaders = hostHeaders
    this.#cookies = cookies
  }

  /** Name in lower case, value, name, value: to be sent in the place of others with these names. */
  fieldsFor(url: URL, via: Via): readonly string[] {
    if (via === 'template') return []
    const isExposed = via === 'proxy' && url.protocol === 'http:'
    const fields = new Map(isExposed ? [] : this.#hostHeaders.of(url.origin).map(([name, value]) => [name, value.reveal()]))
    // RFC 6265 section 5.4: one Cookie field.
    const cookies = [fields.get('cookie'), this.#cookies?.headerFor(url)].filter((text) => text !== undefined)
    if (cookies.length > 0) fields.set('cookie', cookies.join('; '))
    return [...fields].flat()
  }

  /**
   * Takes the cookies of an answer; `headers`: name, value, name, value. Answers whether they change what is sent; so do
   * those that the jar has had since these fields were `sent`: of pages that are asked for at once, each may be given the
   * cookie that only the first of them brings.
   */
  answered(url: URL, via: Via, headers: readonly string[], sent: readonly string[]): boolean {
    if (via === 'template' || this.#cookies === undefined) return false
    if (this.#cookies.receive(url, headers)) return true
    return setsCookies(headers) && this.fieldsFor(url, via).join('\n') !== sent.join('\n')
  }
}

function setsCookies(headers: readonly string[]): boolean {
  return headers.some((text, at) => at % 2 === 0 && text.toLowerCase() === 'set-cookie')
}
