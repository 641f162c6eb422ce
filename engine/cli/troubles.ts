/** What went wrong around a crawl and did not stop it, in one line for `status` and the summary. Pure. */
import type { FlowCounts } from '../core/api-types.ts'
import { count, plural, shortDuration } from './human.ts'

/** Nothing when nothing did. */
export function troubleLines({ blocked, challenged, hostsGivenUp, hostsParked, hostsUnhealthy, networkDownMs, networkDowns, shed }: FlowCounts): readonly string[] {
  const facts = [
    ...(hostsGivenUp > 0 ? [`${plural(hostsGivenUp, 'host')} given up`] : []),
    ...(hostsUnhealthy > 0 ? [`${plural(hostsUnhealthy, 'host')} unhealthy`] : []),
    ...(hostsParked > 0 ? [`${plural(hostsParked, 'host')} parked for asking to be paid`] : []),
    ...(challenged > 0 ? [plural(challenged, 'challenge page')] : []),
    ...(blocked > 0 ? [plural(blocked, 'block page')] : []),
    ...(networkDowns > 0 ? [`the network away ${plural(networkDowns, 'time')}, for ${shortDuration(networkDownMs)}`] : []),
    ...shedFacts(shed),
  ]
  return facts.length === 0 ? [] : [`trouble: ${facts.join(', ')}`]
}

function shedFacts({ deferred, dropped, isShedding, refused }: FlowCounts['shed']): readonly string[] {
  const sums = { 'put off': deferred, dropped, refused }
  const parts = Object.entries(sums).map(([verb, byReason]) => [verb, Object.values(byReason).reduce((sum, times) => sum + times, 0)] as const).filter(([, sum]) => sum > 0)
  return [...(isShedding ? ['shedding now'] : []), ...(parts.length === 0 ? [] : [`URLs shed: ${parts.map(([verb, sum]) => `${count(sum)} ${verb}`).join(' + ')}`])]
}
