/**
 * The registrable domain of a host, by the public suffix list (private section included: two users of one hosting
 * service are two sites). The only importer of tldts. Runs on the main thread and in workers, which must agree.
 */
import { parse } from 'tldts'

const options = { extractHostname: false, validateHostname: false, allowPrivateDomains: true }

/**
 * `www.example.co.uk` gives `example.co.uk`. An IP literal and a suffix itself give the host. Under a top-level domain
 * that the list does not know, that domain is the suffix (the list's own default rule, `*`).
 */
export function registrableDomainOf(host: string): string {
  const { domain, isIp } = parse(host, options)
  return isIp === true || domain === null ? host : domain
}
