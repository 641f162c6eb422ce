/**
 * Challenge and block pages that say so in their header fields: an answer of a service that stands before the site, and
 * not of the site. Only signs that are documented, each with its source; those in the body are read by a worker
 * (threads/html/challenge.ts). Pure. Main thread.
 *
 * Invariant: a field that a service puts on every answer (`x-datadome: protected`, `server: cloudflare`) is no sign.
 */
import type { WallCode } from '../core/errors.ts'
import { headerOf } from '../fetch/response-head.ts'

interface HeaderSign {
  readonly code: WallCode
  /** In lower case. */
  readonly name: string
  readonly value: RegExp
  /** Absent: any. */
  readonly statuses?: readonly number[]
}

const signs: readonly HeaderSign[] = [
  // Cloudflare, "Detect a Challenge Page response": every challenge page has it, and challenge is its only value.
  { code: 'challenged', name: 'cf-mitigated', value: /^challenge$/i },
  // AWS WAF, "CAPTCHA and Challenge action behavior": challenge comes with 202, captcha with 405.
  { code: 'challenged', name: 'x-amzn-waf-action', value: /^(?:challenge|captcha)$/i, statuses: [202, 405] },
  // DataDome, "Protection API": a request that is refused gets 401 or 403, with this field where the answer is JSON.
  { code: 'challenged', name: 'x-dd-b', value: /./, statuses: [401, 403] },
  // Cloudflare, "Pay per crawl: error codes": the owner of the site has blocked the crawler.
  { code: 'blocked', name: 'crawler-error', value: /^CrawlerForbidden$/i, statuses: [403] },
  // Sucuri's firewall names the rule that blocks (WAFW00F, plugins/sucuri.py).
  { code: 'blocked', name: 'x-sucuri-block', value: /./, statuses: [403] },
]

/** Headers are name, value, name, value. Undefined: the answer is the site's own, as far as its head says. */
export function wallInHead(status: number, headers: readonly string[]): WallCode | undefined {
  return signs.find(({ name, value, statuses }) => {
    if (statuses?.includes(status) === false) return false
    const field = headerOf(headers, name)
    return field !== undefined && value.test(field.trim())
  })?.code
}

/** A longer price is none. */
const PRICE_CHARS_MAX = 64

/** What a site asks for a page, as it says it with status 402: `USD 0.01` (Cloudflare, "Pay per crawl: crawl pages"). */
export function priceOf(headers: readonly string[]): string | undefined {
  const price = headerOf(headers, 'crawler-price')?.trim() ?? ''
  return price.length <= PRICE_CHARS_MAX && /^[\x20-\x7e]+$/.test(price) ? price : undefined
}
