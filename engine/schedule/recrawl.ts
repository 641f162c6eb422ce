/**
 * When a URL is fetched again. Pure but for the injected chance: an outcome in, the same outcome with its due time out.
 * Main thread; touches nothing.
 *
 *   read, changed / unchanged     adaptive: the last interval times 0.8 / times 1.4, between floor and ceiling
 *   read for the first time       the floor
 *   redirect                      unchanged if it was one before; its target is a URL of its own, with its own interval
 *   moved for good (301, 308)     the ceiling, then twice the last interval, to 16 ceilings: the target is to be asked in its
 *                                 place from now on (RFC 9110 section 15.4.2); but some say so by mistake, so not never
 *   gone (404, 410)               twice the last interval, whatever the ceiling; never again at the fifth time in a row
 *   other errors, no answer       the floor; from the second in a row on as unchanged, so that what is broken for long is
 *                                 asked ever more rarely
 *   failures that do not pass     the ceiling (the failure table says which), and what robots.txt forbids: asking costs
 *                                 little there, and seldom has another answer
 *   excluded, dropped             never
 *
 * With a fixed interval floor and ceiling are that interval, so only pages that are gone or have moved have another one.
 *
 * The factors are those of Apache Nutch's adaptive schedule in its default configuration (inc_rate 0.4 and dec_rate 0.2 in
 * nutch-default.xml). With them an interval stands still where a share s of the visits finds a change with
 * s ln(1 / 0.8) = (1 - s) ln 1.4, that is s = 0.6.
 *
 * Invariant: a due time is never sooner than the interval after the fetch. It may be a tenth later, by chance, so that
 * pages that were found together do not come back together for ever.
 */
import type { EndedUrl } from '../../storage/store.ts'
import type { Random } from '../core/clock.ts'
import { failureTable, SluiceError, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { parseRecrawl } from '../core/option-values.ts'
import { isMovedForGood, isRedirectStatus } from '../core/redirects.ts'
import type { RecrawlFacts, RecrawlFunction, RecrawlPolicy } from '../core/recrawl-policy.ts'

const GROWTH = 1.4
const SHRINKAGE = 0.8
const JITTER_SHARE = 0.1

export class Recrawl {
  readonly #policy: RecrawlPolicy | RecrawlFunction
  readonly #random: Random

  /** `policy`: the option `recrawl`, a text that was checked or a function. */
  constructor(policy: string | RecrawlFunction, random: Random) {
    this.#policy = typeof policy === 'function' ? policy : parseRecrawl(policy)!
    this.#random = random
  }

  /** The outcome with the moment at which its URL is due again. Throws `bad_option` when the user's function answers nonsense. */
  scheduled(ended: EndedUrl): EndedUrl {
    const policy = this.#policy
    if (isTimeless(policy)) return ended
    const facts = factsOf(ended)
    const intervalMs = typeof policy === 'function' ? asked(policy, facts) : intervalOf(policy, facts)
    const jitter = typeof policy === 'function' ? 0 : JITTER_SHARE * this.#random()
    return {
      ...ended,
      ...(ended.page && facts.goneTimes > 0 && { page: { ...ended.page, goneTimes: facts.goneTimes } }),
      ...(intervalMs !== undefined && { due: { atMs: Math.ceil(ended.atMs + intervalMs * (1 + jitter)), intervalMs: Math.ceil(intervalMs) } }),
    }
  }
}

function isTimeless(policy: RecrawlPolicy | RecrawlFunction): boolean {
  return typeof policy !== 'function' && (policy.kind === 'never' || policy.kind === 'lastmod')
}

export function factsOf({ url: { url, previous }, outcome, code, atMs, page, isUnchanged }: EndedUrl): RecrawlFacts {
  const status = page?.status ?? 0
  const isGone = outcome === 'http_error' && (status === 404 || status === 410)
  const isChanged = changeOf(outcome, isUnchanged === true, previous)
  return {
    url, outcome, status, fetchedAtMs: atMs, goneTimes: isGone ? (previous?.goneTimes ?? 0) + 1 : 0,
    ...(code !== undefined && { code }), ...(isChanged !== undefined && { isChanged }),
    ...(previous && { previous: { fetchedAtMs: previous.fetchedAtMs, status: previous.status, ...(previous.intervalMs !== undefined && { intervalMs: previous.intervalMs }) } }),
  }
}

function changeOf(outcome: RecrawlFacts['outcome'], isUnchanged: boolean, previous: EndedUrl['url']['previous']): boolean | undefined {
  if (outcome === 'not_modified' || isUnchanged) return false
  if (outcome === 'redirect') return previous !== undefined && isRedirectStatus(previous.status) ? false : undefined
  return outcome === 'ok' && previous?.contentHash !== undefined ? true : undefined
}

/** Milliseconds from this fetch to the next; undefined: never. */
export function intervalOf(policy: RecrawlPolicy, facts: RecrawlFacts): number | undefined {
  if (policy.kind === 'never' || policy.kind === 'lastmod') return undefined
  const { outcome, status, goneTimes, isChanged, previous } = facts
  if (outcome === 'excluded' || outcome === 'dropped') return undefined
  const [floorMs, ceilingMs] = policy.kind === 'fixed' ? [policy.intervalMs, policy.intervalMs] : [policy.floorMs, policy.ceilingMs]
  const lastMs = previous?.intervalMs ?? floorMs
  if (goneTimes > 0) return goneTimes < limits.recrawlGoneTimesMax ? 2 * lastMs : undefined
  if (outcome === 'redirect' && isMovedForGood(status)) return Math.min(limits.recrawlMovedCeilingsMax * ceilingMs, Math.max(ceilingMs, 2 * lastMs))
  if (outcome === 'robots_denied' || isLasting(facts)) return ceilingMs
  const within = (ms: number): number => Math.min(ceilingMs, Math.max(floorMs, ms))
  if (outcome === 'failed' || outcome === 'http_error') return previous !== undefined && isError(previous.status) ? within(GROWTH * lastMs) : floorMs
  if (isChanged === undefined) return within(lastMs)
  return within(lastMs * (isChanged ? SHRINKAGE : GROWTH))
}

function isError(status: number): boolean {
  return status === 0 || status >= 400
}

function isLasting({ outcome, code }: RecrawlFacts): boolean {
  return outcome === 'failed' && code !== undefined && Object.hasOwn(failureTable, code) && failureTable[code as FailureCode].retry === 'never'
}

function asked(policy: RecrawlFunction, facts: RecrawlFacts): number | undefined {
  let answer: unknown
  try {
    answer = policy(facts)
  } catch (cause) {
    throw new SluiceError('bad_option', `recrawl: the function threw on ${facts.url}: ${String(cause)}`, { cause })
  }
  if (answer === undefined) return undefined
  if (typeof answer === 'number' && answer >= 0 && answer <= Number.MAX_SAFE_INTEGER / 1_000) return answer
  throw new SluiceError('bad_option', `recrawl: expected milliseconds or undefined for ${facts.url}, given ${String(answer)}`)
}
