/**
 * Which addresses may be connected to. A crawler follows links that strangers wrote, so an address that is reachable
 * only from inside (this machine, its network, the cloud's metadata service) is refused unless the operator opened it.
 * The connector asks here about the very address that it is about to use. Pure: looks nothing up.
 *
 * The tables are the IANA special-purpose registries (RFC 6890 and its updates). For IPv6 they end with "everything
 * outside 2000::/3", the only block from which global addresses are given out.
 */
import { BlockList, isIP } from 'node:net'

export interface AddressRule {
  readonly cidr: string
  readonly what: string
  readonly source: string
}

export const refusedAddresses: readonly AddressRule[] = [
  { cidr: '0.0.0.0/8', what: 'unspecified, or "this network"', source: 'RFC 791 section 3.2' },
  { cidr: '10.0.0.0/8', what: 'private', source: 'RFC 1918' },
  { cidr: '100.64.0.0/10', what: 'shared by a carrier (CGNAT)', source: 'RFC 6598' },
  { cidr: '127.0.0.0/8', what: 'loopback', source: 'RFC 1122 section 3.2.1.3' },
  { cidr: '168.63.129.16/32', what: 'the platform service of Azure', source: 'Microsoft, "What is IP address 168.63.129.16?"' },
  { cidr: '169.254.0.0/16', what: 'link-local; 169.254.169.254 is the metadata service of most clouds', source: 'RFC 3927' },
  { cidr: '172.16.0.0/12', what: 'private', source: 'RFC 1918' },
  { cidr: '192.0.0.0/24', what: 'reserved for protocols', source: 'RFC 6890 section 2.1' },
  { cidr: '192.0.2.0/24', what: 'for documentation', source: 'RFC 5737' },
  { cidr: '192.88.99.0/24', what: 'a 6to4 relay, deprecated', source: 'RFC 7526' },
  { cidr: '192.168.0.0/16', what: 'private', source: 'RFC 1918' },
  { cidr: '198.18.0.0/15', what: 'for benchmarks', source: 'RFC 2544' },
  { cidr: '198.51.100.0/24', what: 'for documentation', source: 'RFC 5737' },
  { cidr: '203.0.113.0/24', what: 'for documentation', source: 'RFC 5737' },
  { cidr: '224.0.0.0/4', what: 'multicast', source: 'RFC 5771' },
  { cidr: '255.255.255.255/32', what: 'broadcast', source: 'RFC 919 section 7' },
  { cidr: '240.0.0.0/4', what: 'reserved', source: 'RFC 1112 section 4' },
  { cidr: '::/128', what: 'unspecified', source: 'RFC 4291 section 2.5.2' },
  { cidr: '::1/128', what: 'loopback', source: 'RFC 4291 section 2.5.3' },
  { cidr: '::ffff:0:0/96', what: 'an IPv4 address in IPv6 (mapped)', source: 'RFC 4291 section 2.5.5.2' },
  { cidr: '::/96', what: 'an IPv4 address in IPv6 (compatible, deprecated)', source: 'RFC 4291 section 2.5.5.1' },
  { cidr: '64:ff9b:1::/48', what: 'local translation to IPv4', source: 'RFC 8215' },
  { cidr: '100::/64', what: 'discarded', source: 'RFC 6666' },
  { cidr: '2001:2::/48', what: 'for benchmarks', source: 'RFC 5180' },
  { cidr: '2001:10::/28', what: 'an identifier, not an address (ORCHID)', source: 'RFC 4843' },
  { cidr: '2001:20::/28', what: 'an identifier, not an address (ORCHIDv2)', source: 'RFC 7343' },
  { cidr: '2001:db8::/32', what: 'for documentation', source: 'RFC 3849' },
  { cidr: '3fff::/20', what: 'for documentation', source: 'RFC 9637' },
  { cidr: 'fc00::/7', what: 'unique-local', source: 'RFC 4193' },
  { cidr: 'fe80::/10', what: 'link-local', source: 'RFC 4291 section 2.5.6' },
  { cidr: 'fec0::/10', what: 'site-local, deprecated', source: 'RFC 3879' },
  { cidr: 'ff00::/8', what: 'multicast', source: 'RFC 4291 section 2.7' },
  { cidr: '::/3', what: 'not a global address', source: 'RFC 4291 section 2.4' },
  { cidr: '4000::/2', what: 'not a global address', source: 'RFC 4291 section 2.4' },
  { cidr: '8000::/1', what: 'not a global address', source: 'RFC 4291 section 2.4' },
]

/** Prefixes whose addresses lead to an IPv4 address: they are judged by it. `at` is its first group of 16 bits. */
const embeddings = [
  { list: listOf('64:ff9b::/96'), at: 6, inverted: false, what: 'NAT64 (RFC 6052)' },
  { list: listOf('2002::/16'), at: 1, inverted: false, what: '6to4 (RFC 3056)' },
  { list: listOf('2001::/32'), at: 2, inverted: false, what: 'Teredo server (RFC 4380)' },
  { list: listOf('2001::/32'), at: 6, inverted: true, what: 'Teredo client (RFC 4380)' },
] as const

const rules = refusedAddresses.map((rule) => ({ ...rule, list: listOf(rule.cidr), version: isIP(rule.cidr.split('/')[0]!) }))

export type AddressVerdict = { readonly allowed: true } | { readonly allowed: false, readonly why: string }

const allowed: AddressVerdict = { allowed: true }

export interface AddressGuard {
  /** Judges an address in its textual form, without brackets. */
  verdict(address: string): AddressVerdict
}

/** Lets everything through: for addresses that the operator gave. */
export const anyAddress: AddressGuard = { verdict: () => allowed }

/** A guard that also lets through what lies in `allowAddress` (CIDRs, or single addresses). */
export function createAddressGuard(allowAddress: readonly string[]): AddressGuard {
  const opened = { 4: new BlockList(), 6: new BlockList() }
  for (const cidr of allowAddress) addTo(opened[isIP(cidr.split('/')[0]!) === 4 ? 4 : 6], cidr)

  function refusal(address: string): string | undefined {
    const version = isIP(address)
    if (version === 0) return 'not an address'
    if (version === 4) {
      // The lists are apart because a BlockList compares an IPv4 address with IPv6 ranges too: ::/0 must not open it.
      if (opened[4].check(address, 'ipv4')) return undefined
      return refusalByTable(address, 4)
    }
    // A BlockList also knows the mapped form of an IPv4 address that was opened: it is the same destination.
    if (opened[6].check(address, 'ipv6') || opened[4].check(address, 'ipv6')) return undefined
    const embedding = embeddings.filter(({ list }) => list.check(address, 'ipv6'))
    if (embedding.length === 0) return refusalByTable(address, 6)
    for (const { at, inverted, what } of embedding) {
      const inner = embeddedIPv4(address, at, inverted)
      const why = refusal(inner)
      if (why !== undefined) return `${what} of ${inner}, which is ${why}`
    }
    return undefined
  }

  return {
    verdict(address) {
      const why = refusal(address.split('%')[0]!)
      return why === undefined ? allowed : { allowed: false, why: `${address} is ${why}` }
    },
  }
}

function refusalByTable(address: string, version: 4 | 6): string | undefined {
  const rule = rules.find((rule) => rule.version === version && rule.list.check(address, version === 4 ? 'ipv4' : 'ipv6'))
  return rule === undefined ? undefined : `${rule.what} (${rule.source})`
}

function listOf(cidr: string): BlockList {
  const list = new BlockList()
  addTo(list, cidr)
  return list
}

function addTo(list: BlockList, cidr: string): void {
  const [network = '', bits] = cidr.split('/')
  const version = isIP(network)
  list.addSubnet(network, bits === undefined ? (version === 4 ? 32 : 128) : Number(bits), version === 4 ? 'ipv4' : 'ipv6')
}

/** The IPv4 address in two groups of an IPv6 address. */
function embeddedIPv4(address: string, at: number, inverted: boolean): string {
  const groups = groupsOf(address)
  const flip = inverted ? 0xffff : 0
  const [high, low] = [groups[at]! ^ flip, groups[at + 1]! ^ flip]
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** The eight groups of an IPv6 address that `isIP` accepted. */
function groupsOf(address: string): readonly number[] {
  // The URL parser writes every form, dotted decimal included, as hexadecimal groups (WHATWG URL, "IPv6 serializer").
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::')
  const [first, last] = [parseGroups(head), parseGroups(tail ?? '')]
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
}

function parseGroups(part: string): readonly number[] {
  return part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
}
