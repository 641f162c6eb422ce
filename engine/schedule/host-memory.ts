/**
 * What a host must still know after a restart, and how it is read back. Inside the process waits run on the monotonic
 * clock; what is stored is wall clock, the only time that outlives a process, and it may have jumped meanwhile. So a
 * moment that is over is over, and one further ahead than such a wait can be is taken as the longest such wait.
 * Pure but for the host that is changed. Main thread.
 */
import type { HostRecord, HostUpdate } from '../../storage/store.ts'
import type { Clock } from '../core/clock.ts'
import { failureTable, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { Health } from './health.ts'
import type { Host } from './host.ts'
import type { Limiter, LimiterMemory } from './limiter.ts'

/** The longest rest that we choose. */
const restMsMax = Math.max(limits.backoffMsMax, limits.healthRestMsMax)

/** Health that differs by less from what is stored is not worth a row. */
const HEALTH_STEP = 0.1

/** The record's facts of a host; those that are as at first are undefined, and take no room. */
export function memoryOf(host: Host, clock: Clock): HostUpdate {
  const { name, limiter, crawlDelayMs, failures, failureCode, health, parked } = host
  const wallOf = (atMs: number): number | undefined => (atMs <= clock.nowMs() ? undefined : Math.round(clock.wallMs() + atMs - clock.nowMs()))
  return {
    name, limit: limitOf(limiter), limitMemory: limitMemoryOf(limiter), crawlDelayMs: crawlDelayMs || undefined,
    backoffUntilMs: wallOf(host.backoffUntilMs), retryAfterUntilMs: wallOf(host.retryAfterUntilMs),
    failures: failures || undefined, failureCode, health: health === 1 ? undefined : Math.round(health * 100) / 100, givenUp: givenUpOf(host), parked,
  }
}

/** Why and when (wall clock) it was given up, if it was. */
export function givenUpOf({ ended, givenUpAtMs }: Host): HostRecord['givenUp'] {
  return ended?.outcome === 'failed' && givenUpAtMs !== undefined ? { code: ended.code, atMs: givenUpAtMs } : undefined
}

/** Notes of the host that what it knows now is stored. */
export function noteStored(host: Host): void {
  host.storedLimit = limitOf(host.limiter)
  host.storedLimitMemory = limitMemoryOf(host.limiter)
  host.storedHealth = host.health
}

/** Limiter or health have drifted from what is stored; all else is stored when it changes. */
export function isUnstored({ limiter, storedLimit, storedLimitMemory, health, storedHealth }: Host): boolean {
  const { limit, known, patience, paceMs } = limiter.memory()
  return limit !== storedLimit || known !== storedLimitMemory?.known || patience !== storedLimitMemory?.patience || paceMs !== storedLimitMemory?.paceMs
    || Math.abs(health - storedHealth) >= HEALTH_STEP
}

function limitOf(limiter: Limiter): number {
  return limiter.memory().limit
}

/** Most hosts refuse nothing. */
function limitMemoryOf(limiter: Limiter): HostRecord['limitMemory'] {
  const { limit: _limit, ...memory } = limiter.memory()
  return memory.known === undefined && memory.paceMs === undefined ? undefined : memory
}

/** For the limiter of a host that comes into memory; what is no number was never written by us. */
export function limiterMemoryOf({ limit, limitMemory }: HostRecord): LimiterMemory {
  const { known, patience, paceMs } = limitMemory ?? {}
  return Object.fromEntries(Object.entries({ limit, known, patience, paceMs }).filter(([, value]) => Number.isFinite(value)))
}

/** Gives a host what its record says. What its limiter knows is given to that at its start. */
export function remember(host: Host, record: HostRecord, clock: Clock): void {
  const { crawlDelayMs = 0, backoffUntilMs, retryAfterUntilMs, health = 1, failures = 0, givenUp, excluded, parked } = record
  host.answeredOnce = record.answered === true
  host.crawlDelayMs = Math.min(crawlDelayMs, limits.crawlDelayMsMax)
  host.backoffUntilMs = untilMsOf(backoffUntilMs, restMsMax, clock)
  host.retryAfterUntilMs = untilMsOf(retryAfterUntilMs, limits.retryAfterMsMax, clock)
  host.health = Math.min(1, Math.max(0, health))
  host.storedHealth = host.health
  host.storedLimitMemory = limitMemoryOf(host.limiter)
  if (host.health < 1) host.healthFacts = new Health(clock.nowMs(), 1 - host.health)
  if (excluded === true) host.ended = { outcome: 'excluded' }
  const parkedFor = codeOf(parked?.code)
  if (parked !== undefined && parkedFor !== undefined) host.parked = { ...parked, code: parkedFor }
  if (givenUp !== undefined) {
    const code = codeOf(givenUp.code)
    if (host.ended !== undefined || code === undefined || waitMsOf(givenUp.atMs + limits.hostGivenUpMs, limits.hostGivenUpMs, clock) === 0) return
    host.ended = { outcome: 'failed', code }
    host.givenUpAtMs = givenUp.atMs
  }
  host.failures = failures
  host.failingSinceMs = clock.nowMs()
  host.failureCode = codeOf(record.failureCode)
}

/** What is left of a wait until a moment of the wall clock. */
function waitMsOf(untilMs: number | undefined, waitMsMax: number, clock: Clock): number {
  return untilMs === undefined ? 0 : Math.min(waitMsMax, Math.max(0, untilMs - clock.wallMs()))
}

/** The same moment on the monotonic clock; 0 when it is over. */
function untilMsOf(untilMs: number | undefined, waitMsMax: number, clock: Clock): number {
  const waitMs = waitMsOf(untilMs, waitMsMax, clock)
  return waitMs === 0 ? 0 : clock.nowMs() + waitMs
}

/** A host that was given up or parked, or that rests, begins anew; what its server asked for still stands. */
export function forgive(host: Host): void {
  host.ended = undefined
  host.parked = undefined
  host.givenUpAtMs = undefined
  host.failures = 0
  host.failureCode = undefined
  host.health = 1
  host.healthFacts = undefined
  host.backoffUntilMs = 0
  host.refused = undefined
}

/** The same in the record of a host that is not in memory. */
export function forgiven(name: string): HostUpdate {
  return { name, givenUp: undefined, parked: undefined, failures: undefined, failureCode: undefined, health: undefined, backoffUntilMs: undefined }
}

/** How it is shown that a host is parked. */
export function parkedStats({ code, price, atMs }: NonNullable<HostRecord['parked']>): { readonly code: string; readonly price?: string; readonly at: string } {
  return { code, ...(price !== undefined && { price }), at: new Date(atMs).toISOString() }
}

/** What is left of a host's rests, in memory or stored, and of the longer one. */
export function restsOf(host: Host | undefined, record: HostRecord, clock: Clock): { readonly backoffMs: number; readonly retryAfterMs: number; readonly restMs: number } {
  const leftOf = (atMs: number): number => Math.round(Math.max(0, atMs - clock.nowMs()))
  const backoffMs = host === undefined ? waitMsOf(record.backoffUntilMs, restMsMax, clock) : leftOf(host.backoffUntilMs)
  const retryAfterMs = host === undefined ? waitMsOf(record.retryAfterUntilMs, limits.retryAfterMsMax, clock) : leftOf(host.retryAfterUntilMs)
  return { backoffMs, retryAfterMs, restMs: Math.max(backoffMs, retryAfterMs) }
}

function codeOf(text: string | undefined): FailureCode | undefined {
  return text !== undefined && text in failureTable ? text as FailureCode : undefined
}
