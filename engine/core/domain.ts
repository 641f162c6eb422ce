/**
 * The registrable domain of a host, by the public suffix list (private section included: two users of one hosting
 * service are two sites). The only importer of tldts. Runs on the main thread and in workers, which must agree.
 */
import { parse } from 'tldts'

const options = { extractHostname: false, validateHostname: false, allowPrivateDomains: true }

/** `www.example.co.uk` gives `example.co.uk`. An IP literal, a suffix itself or a name of no known suffix gives the host. */
export function registrableDomainOf(host: string): string {
  const { domain, isIcann, isPrivate, isIp } = parse(host, options)
  return isIp === true || domain === null || (isIcann !== true && isPrivate !== true) ? host : domain
}
