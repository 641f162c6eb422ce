/**
 * What a change of the operator's list of excluded hosts means for hosts in memory. Those that are not are asked about when
 * they come in (host-maker.ts). Pure but for the hosts that are changed. Main thread.
 */
import type { Host } from './host.ts'

export interface Listing {
  /** The list names it. */
  isListed(name: string): boolean
  /** Somebody has excluded it by name: it stays excluded, whatever the list says. */
  isNamed(name: string): boolean
}

/** Hosts that end now, or go on again. */
export function relist(hosts: Iterable<Host>, { isListed, isNamed }: Listing): Host[] {
  const changed: Host[] = []
  for (const host of hosts) {
    const isNow = isListed(host.name)
    const wasExcluded = host.ended?.outcome === 'excluded'
    if (isNow === wasExcluded || (wasExcluded && isNamed(host.name))) continue
    host.ended = isNow ? { outcome: 'excluded' } : undefined
    changed.push(host)
  }
  return changed
}
