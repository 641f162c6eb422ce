/**
 * A look at all hosts in memory: the few that are worst off, and how the limits are spread. Made when somebody asks, in
 * one pass and with room for the few alone. Pure. Main thread.
 *
 * Measured with 100,000 hosts, a tenth of them not well: 6 to 8 ms (bench/metrics.ts).
 */
import type { HostPressure, HostShares } from '../core/api-types.ts'
import type { Clock } from '../core/clock.ts'
import { limits } from '../core/limits.ts'
import { hasWork, restUntilMs, type Host } from '../schedule/host.ts'

export interface HostSurvey {
  /** The worst first: by health, then by the time since one of their URLs was started. */
  readonly worst: readonly HostPressure[]
  /** Hosts by their limit: at most 1, 2, 4, 8 and so on, up to 16,384. */
  readonly byLimit: readonly { readonly limitMax: number; readonly hosts: number }[]
}

interface Ranked {
  readonly host: Host
  readonly health: number
  readonly idleMs: number
}

function isWorse(one: Ranked, other: Ranked): boolean {
  return one.health < other.health || (one.health === other.health && one.idleMs > other.idleMs)
}

/** Puts it where it belongs among the worst so far, which are as many as may be at most. */
function rank(worst: Ranked[], one: Ranked): void {
  if (worst.length === limits.worstHostsMax) {
    if (!isWorse(one, worst.at(-1)!)) return
    worst.pop()
  }
  let at = worst.length
  while (at > 0 && isWorse(one, worst[at - 1]!)) at -= 1
  worst.splice(at, 0, one)
}

/** What its health is made of, in hundredths. */
export function sharesOf(host: Host | undefined): { readonly shares?: HostShares } {
  if (host?.healthFacts === undefined) return {}
  return { shares: Object.fromEntries(Object.entries(host.healthFacts.shares).map(([name, share]) => [name, Math.round(share * 100) / 100])) as unknown as HostShares }
}

/** Hosts without work are left out of the worst: nothing waits for them. */
export function surveyHosts(hosts: Iterable<Host>, nowMs: number): HostSurvey {
  const worst: Ranked[] = []
  const counts = Array.from({ length: 15 }, () => 0)
  for (const host of hosts) {
    counts[Math.min(counts.length - 1, Math.ceil(Math.log2(host.limiter.limit)))]! += 1
    // Most hosts are well: what they would be compared by is only read of those that may be among the worst.
    if (worst.length === limits.worstHostsMax && host.health > worst.at(-1)!.health) continue
    if (hasWork(host)) rank(worst, { host, health: host.health, idleMs: nowMs - host.startedAtMs })
  }
  return {
    worst: worst.map(({ host, health, idleMs }) => ({
      name: host.name, health: Math.round(health * 100) / 100, idleMs: Math.round(idleMs), inFlight: host.limiter.inFlight, limit: host.limiter.limit,
      waitMs: Math.round(Math.max(0, restUntilMs(host) - nowMs)), failures: host.failures, ...(host.failureCode !== undefined && { failureCode: host.failureCode }), ...(host.parked !== undefined && { parked: host.parked.code }), ...sharesOf(host),
    })),
    byLimit: counts.map((hosts, index) => ({ limitMax: 2 ** index, hosts })),
  }
}

/** Looks at the hosts when somebody asks, and no more often than once in `hostSurveyMsMax`, however many ask. */
export class HostSurveys {
  readonly #hosts: ReadonlyMap<string, Host>
  readonly #clock: Pick<Clock, 'nowMs'>
  #last: { readonly survey: HostSurvey; readonly atMs: number } | undefined

  constructor(hosts: ReadonlyMap<string, Host>, clock: Pick<Clock, 'nowMs'>) {
    this.#hosts = hosts
    this.#clock = clock
  }

  read(): HostSurvey {
    const atMs = this.#clock.nowMs()
    if (this.#last === undefined || atMs - this.#last.atMs >= limits.hostSurveyMsMax) this.#last = { survey: surveyHosts(this.#hosts.values(), atMs), atMs }
    return this.#last.survey
  }
}
