import { describe, expect, it } from 'vitest'
import { refusalReasons, type QueuedUrl } from '../../engine/core/types.ts'
import { comparedWithStored, NearDuplicates, type ComparingParts } from '../../engine/near-duplicates.ts'
import { recordOfLine } from '../../engine/record-line.ts'
import { integer, withSeeds } from '../support/random.ts'
import type { Random } from '../../engine/core/clock.ts'
import { ended, linkList } from '../contract/store-batch.ts'

function hashOf(bits: bigint): Uint8Array {
  return Buffer.from(bits.toString(16).padStart(16, '0'), 'hex')
}

function anyBits(random: Random): bigint {
  return (BigInt(integer(random, 2 ** 32)) << 32n) | BigInt(integer(random, 2 ** 32))
}

/** Changes so many different bits. */
function changed(bits: bigint, count: number, random: Random): bigint {
  const places = new Set<number>()
  while (places.size < count) places.add(integer(random, 64))
  return [...places].reduce((result, place) => result ^ (1n << BigInt(place)), bits)
}

function distance(one: bigint, other: bigint): number {
  return (one ^ other).toString(2).replaceAll('0', '').length
}

describe('a table of SimHashes', () => {
  it('finds what a search through the last hashes finds, while they are added and forgotten', async () => {
    await withSeeds(20, (random) => {
      const capacity = 1 + integer(random, 60)
      const table = new NearDuplicates({ capacity })
      const model: bigint[] = []
      const all: bigint[] = []
      for (let step = 0; step < 500; step += 1) {
        // Mostly near something that was added at some time, forgotten or not: by 0 to 6 bits.
        const bits = all.length === 0 || random() < 0.3 ? anyBits(random) : changed(all[integer(random, all.length)]!, integer(random, 7), random)
        expect(table.find(hashOf(bits))).toBe(model.some((other) => distance(bits, other) <= 3))
        if (random() < 0.5) continue
        table.add(hashOf(bits))
        all.push(bits)
        model.push(bits)
        if (model.length > capacity) model.shift()
        expect(table.size).toBe(model.length)
      }
    })
  })

  it('finds a hash with any three of its bits changed, and none with four', () => {
    const bits = 0x0123_4567_89ab_cdefn
    const table = new NearDuplicates({ capacity: 10 })
    table.add(hashOf(bits))
    for (let first = 0; first < 62; first += 1) {
      for (let second = first + 1; second < 63; second += 1) {
        for (let third = second + 1; third < 64; third += 1) {
          const near = bits ^ (1n << BigInt(first)) ^ (1n << BigInt(second)) ^ (1n << BigInt(third))
          if (!table.find(hashOf(near))) expect.unreachable(`bits ${first}, ${second} and ${third}`)
          if (third < 63 && table.find(hashOf(near ^ (1n << 63n)))) expect.unreachable(`bits ${first}, ${second}, ${third} and 63`)
        }
      }
    }
  })

  it('finds nothing while it is empty, not even zeros', () => {
    const table = new NearDuplicates({ capacity: 4 })
    expect(table.find(hashOf(0n))).toBe(false)
    table.add(hashOf(0n))
    expect(table.find(hashOf(0n))).toBe(true)
  })

  it('forgets a hash after as many others as it has room for, not one sooner', () => {
    const table = new NearDuplicates({ capacity: 3 })
    const [first, ...others] = [0xffffn, 0xffff_0000n, 0xffff_0000_0000n, 0xffff_0000_0000_0000n].map(hashOf)
    table.add(first!)
    table.add(others[0]!)
    table.add(others[1]!)
    expect(table.find(first!)).toBe(true)
    table.add(others[2]!)
    expect([first!, ...others].map((hash) => table.find(hash))).toEqual([false, true, true, true])
  })

  it('compares no more than so many hashes of a chain, the newest', () => {
    const table = new NearDuplicates({ capacity: 100, candidatesMax: 5 })
    // All share their highest block alone: the other blocks differ from each other in many bits.
    const hashes = Array.from({ length: 6 }, (_, index) => (
      Uint8Array.of(0xab, 0xcd, ...[0x1111, 0x0f0f, 0x2222].flatMap((step) => [(index * step) >> 8, (index * step) & 255]))))
    for (const hash of hashes) table.add(hash)
    // Near the oldest, by a bit in each of the three other blocks: the chain of the highest alone leads there.
    const probe = (hash: Uint8Array): Uint8Array => Uint8Array.from(hash, (byte, at) => (at === 3 || at === 5 || at === 7 ? byte ^ 1 : byte))
    expect(hashes.map((hash) => table.find(probe(hash)))).toEqual([false, true, true, true, true, true])
    expect(hashes.every((hash) => table.find(hash))).toBe(true)
  })
})

describe('a page on its way to the commit', () => {
  const url: QueuedUrl = {
    row: new Uint8Array(), fingerprint: new Uint8Array(16), host: 'a.test', sequence: 1, url: 'http://a.test/', depth: 0, priority: 0, attempts: 0,
  }
  const refused = { ...Object.fromEntries(refusalReasons.map((reason) => [reason, 0])), scope: 2 }
  const page = ended(url, { links: linkList(['http://a.test/1', 'http://a.test/2']), refused })
  function parts(policy: 'count' | 'skip', table = new NearDuplicates({ capacity: 10 })): ComparingParts {
    return { nearDuplicates: table, options: { nearDuplicates: policy } }
  }
  const [first, near, far] = [hashOf(0xffn), hashOf(0xf1n), hashOf(0xffff_0000_00ffn)]

  it.each(['count', 'skip'] as const)('goes on as it is when it is like none before, or has no SimHash, with %s', (policy) => {
    const engine = parts(policy)
    expect(comparedWithStored(engine, { ended: page, followsLinks: true, simhash: first })).toBe(page)
    expect(comparedWithStored(engine, { ended: page, followsLinks: true, simhash: far })).toBe(page)
    expect(comparedWithStored(engine, { ended: page, followsLinks: true })).toBe(page)
    expect(comparedWithStored(engine, { ended: page, followsLinks: true })).toBe(page)
    expect(comparedWithStored({ ...engine, nearDuplicates: undefined }, { ended: page, followsLinks: true, simhash: first })).toBe(page)
  })

  it('is counted and marked in its record when it is like one before, and keeps its links with count', () => {
    const engine = parts('count')
    comparedWithStored(engine, { ended: page, followsLinks: true, simhash: first })
    const marked = comparedWithStored(engine, { ended: page, followsLinks: true, simhash: near })
    expect(marked).toMatchObject({ isNearDuplicate: true, refused, outcome: 'ok', url })
    expect(marked.links).toBe(page.links)
    expect(recordOfLine(marked.line)).toEqual({ url: 'http://a.test/', nearDuplicate: true })
  })

  it('loses its links with skip, and each of them is counted as refused', () => {
    const engine = parts('skip')
    comparedWithStored(engine, { ended: page, followsLinks: true, simhash: first })
    const marked = comparedWithStored(engine, { ended: page, followsLinks: true, simhash: near })
    expect(marked).toMatchObject({ isNearDuplicate: true, links: { count: 0 }, refused: { ...refused, near_duplicate: 2, scope: 2 } })
    expect(recordOfLine(marked.line)).toHaveProperty('nearDuplicate', true)
  })

  it('leads on with skip where it refreshes itself to, since nothing else may lead there', () => {
    const engine = parts('skip')
    const links = { ...linkList(['http://a.test/1', 'http://a.test/hop', 'http://a.test/2']), isRedirect: (index: number) => index === 1 }
    comparedWithStored(engine, { ended: page, followsLinks: true, simhash: first })
    const marked = comparedWithStored(engine, { ended: { ...page, links }, followsLinks: true, simhash: near })
    expect([marked.links.count, marked.links.url(0), marked.links.isRedirect(0), marked.refused?.near_duplicate]).toEqual([1, 'http://a.test/hop', true, 2])
    expect(marked.links.fingerprint(0)).toEqual(links.fingerprint(1))
  })

  it('keeps its links with skip when the page that it is like was too deep for its own to be followed', () => {
    const engine = parts('skip')
    const deep = { ended: page, simhash: first, followsLinks: false }
    expect(comparedWithStored(engine, deep)).toBe(page)
    expect(comparedWithStored(engine, { ended: page, simhash: near, followsLinks: true })).toBe(page)
    expect(comparedWithStored(engine, deep)).toMatchObject({ isNearDuplicate: true, links: { count: 0 } })
    const counting = parts('count')
    comparedWithStored(counting, deep)
    expect(comparedWithStored(counting, deep)).toMatchObject({ isNearDuplicate: true })
  })

  it('is not compared when it was fetched before: it would be like its own earlier text', () => {
    const table = new NearDuplicates({ capacity: 10 })
    const again = { ...page, url: { ...page.url, previous: { fetchedAtMs: 1, status: 200 } } }
    comparedWithStored(parts('skip', table), { ended: page, followsLinks: true, simhash: first })
    expect(comparedWithStored(parts('skip', table), { ended: again, followsLinks: true, simhash: first })).toBe(again)
    expect(table.size).toBe(1)
  })

  it('is not remembered when it is like one before: likeness is not handed on from page to page', () => {
    const table = new NearDuplicates({ capacity: 10 })
    const engine = parts('count', table)
    const steps = [0n, 0b111n, 0b111_111n].map((bits) => comparedWithStored(engine, { ended: page, followsLinks: true, simhash: hashOf(bits) }).isNearDuplicate)
    expect(steps).toEqual([undefined, true, undefined])
    expect(table.size).toBe(2)
  })
})
