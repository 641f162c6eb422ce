import * as fc from 'fast-check'
import { isIP } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createAddressGuard, refusedAddresses } from '../../engine/fetch/address-guard.ts'

const closed = createAddressGuard([])
const allows = (address: string, guard = closed): boolean => guard.verdict(address).allowed

/** The naive model: an address and a range as numbers. */
function numberOf(address: string): bigint {
  if (isIP(address) === 4) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::')
  const [first, last] = [groupsOf(head), groupsOf(tail)]
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n)
}

function groupsOf(part: string | undefined): string[] {
  return part === undefined || part === '' ? [] : part.split(':')
}

function lies(address: string, cidr: string): boolean {
  const [network = '', bits = '0'] = cidr.split('/')
  if (isIP(address) !== isIP(network)) return false
  const shift = BigInt((isIP(address) === 4 ? 32 : 128) - Number(bits))
  return numberOf(address) >> shift === numberOf(network) >> shift
}

const ipv4 = fc.integer({ min: 0, max: 2 ** 32 - 1 }).map((n) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255].join('.'))
const hex = (n: number): string => n.toString(16)
const ipv6 = fc.array(fc.integer({ min: 0, max: 65_535 }), { minLength: 8, maxLength: 8 }).map((groups) => groups.map(hex).join(':'))
/** Addresses near the borders of every range, where a wrong prefix length shows. */
const borders = refusedAddresses.filter(({ cidr }) => isIP(cidr.split('/')[0]!) === 4).flatMap(({ cidr }) => {
  const [network = '', bits] = cidr.split('/')
  const first = Number(numberOf(network))
  const last = first + 2 ** (32 - Number(bits)) - 1
  return [first - 1, first, last, last + 1].filter((n) => n >= 0 && n < 2 ** 32).map((n) => [Math.floor(n / 2 ** 24), (n >>> 16) & 255, (n >>> 8) & 255, n & 255].join('.'))
})

describe('without an opened range', () => {
  test.each([
    '0.0.0.0', '10.0.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.254', '168.63.129.16', '169.254.169.254', '172.16.0.1',
    '172.31.255.255', '192.0.0.192', '192.0.2.1', '192.168.1.1', '198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.9',
    '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255',
    '::', '::1', 'fe80::1', 'fe80::1%eth0', 'febf::1', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1', '2001:db8::1', '3fff::1', '100::1',
    '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '::127.0.0.1', '::8.8.8.8', '2001:2::1', '2001:10::1', '2001:20::1',
    '64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::8.8.8.8', '2002:7f00:1::', '2002:a00:1::1', '2002:a9fe:a9fe::1',
    // Teredo: the server in groups 2 and 3, the client inverted in the last two.
    '2001:0:7f00:1::', '2001:0:808:808::80ff:fffe', '4000::1', '8000::1', 'e000::1', '1000::1',
    'localhost', '', '1.2.3', '256.1.1.1', '[::1]',
  ])('%s is refused', (address) => {
    expect(allows(address)).toBe(false)
  })

  test.each([
    '8.8.8.8', '1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0', '169.253.255.255',
    '172.15.255.255', '172.32.0.0', '192.0.1.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255',
    '2606:4700:4700::1111', '2a00:1450:4001:81b::200e', '2001:4860:4860::8888', '64:ff9b::8.8.8.8', '2002:808:808::1',
    // Client 8.8.4.4, server 8.8.8.8.
    '2001:0:808:808:0:0:f7f7:fbfb',
  ])('%s is allowed', (address) => {
    expect(closed.verdict(address)).toEqual({ allowed: true })
  })

  test('an IPv4 address is refused exactly when a row of the table holds it', () => {
    fc.assert(fc.property(fc.oneof(ipv4, fc.constantFrom(...borders)), (address) => {
      expect(allows(address)).toBe(!refusedAddresses.some(({ cidr }) => lies(address, cidr)))
    }), { numRuns: 2_000 })
  })

  test('an IPv6 address is allowed only within 2000::/3 or the NAT64 prefix', () => {
    fc.assert(fc.property(ipv6, (address) => {
      if (allows(address)) expect(lies(address, '2000::/3') || lies(address, '64:ff9b::/96')).toBe(true)
    }), { numRuns: 2_000 })
  })

  test('an IPv4 address in NAT64, 6to4 or Teredo is judged as itself, and in mapped or compatible form refused', () => {
    fc.assert(fc.property(fc.oneof(ipv4, fc.constantFrom(...borders)), (address) => {
      const number = Number(numberOf(address))
      const [high, low] = [number >>> 16, number & 65_535]
      const [notHigh, notLow] = [high ^ 65_535, low ^ 65_535]
      expect(allows(`64:ff9b::${address}`)).toBe(allows(address))
      expect(allows(`2002:${hex(high)}:${hex(low)}::1`)).toBe(allows(address))
      expect(allows(`2001:0:808:808:0:0:${hex(notHigh)}:${hex(notLow)}`)).toBe(allows(address))
      expect(allows(`2001:0:${hex(high)}:${hex(low)}:0:0:f7f7:fbfb`)).toBe(allows(address))
      expect(allows(`::ffff:${address}`)).toBe(false)
      expect(allows(`::${address}`)).toBe(false)
    }), { numRuns: 1_000 })
  })

  test('the reason names the address, what it is and the source', () => {
    expect(closed.verdict('169.254.169.254')).toEqual({ allowed: false, why: expect.stringMatching(/^169\.254\.169\.254 is link-local.*RFC 3927/) })
    expect(closed.verdict('64:ff9b::a00:1')).toEqual({ allowed: false, why: expect.stringMatching(/NAT64.*10\.0\.0\.1, which is private \(RFC 1918\)/) })
  })
})

describe('an opened range', () => {
  test('opens its addresses, in every form, and no other', () => {
    const guard = createAddressGuard(['127.0.0.0/8', 'fd00::/8', '10.1.2.3'])
    for (const address of ['127.0.0.1', '127.9.9.9', 'fd12::1', '10.1.2.3', '::ffff:127.0.0.1', '64:ff9b::10.1.2.3']) expect(allows(address, guard)).toBe(true)
    for (const address of ['10.1.2.4', '192.168.0.1', 'fc00::1', '::1', '169.254.169.254', '::ffff:10.0.0.1']) expect(allows(address, guard)).toBe(false)
  })

  test('of all IPv6 addresses opens no IPv4 address', () => {
    const guard = createAddressGuard(['::/0'])
    expect(allows('127.0.0.1', guard)).toBe(false)
    expect(allows('::1', guard)).toBe(true)
  })

  test('of all IPv4 addresses opens no IPv6 address of its own', () => {
    const guard = createAddressGuard(['0.0.0.0/0'])
    expect(allows('10.0.0.1', guard)).toBe(true)
    expect(allows('::1', guard)).toBe(false)
    expect(allows('fe80::1', guard)).toBe(false)
  })

  test('does exactly what its bits say', () => {
    fc.assert(fc.property(ipv4, fc.integer({ min: 1, max: 32 }), fc.constantFrom(...borders), (network, bits, address) => {
      const cidr = `${network}/${bits}`
      expect(allows(address, createAddressGuard([cidr]))).toBe(allows(address) || lies(address, cidr))
    }), { numRuns: 500 })
  })
})
