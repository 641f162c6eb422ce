import { describe, expect, it } from 'vitest'
import { DistinctKeys } from '../../threads/html/distinct.ts'
import { HrefHash } from '../../threads/html/href-hash.ts'
import { HrefMemory, isRooted } from '../../threads/html/href-memory.ts'
import { integer, withSeeds } from '../support/random.ts'

const bytesOf = (text: string): Uint8Array => Buffer.from(text)

describe('DistinctKeys', () => {
  it('says what a set of strings says, page after page', () => withSeeds(10, (random) => {
    const keys = new DistinctKeys(300)
    for (let page = 0; page < 20; page += 1) {
      const met = new Set<string>()
      keys.begin()
      for (let count = 0; count < 300; count += 1) {
        // Few values a word, so that keys agree in some words and not in others.
        const [a, b, c, d] = [integer(random, 4), integer(random, 4), integer(random, 4) - 2, integer(random, 4)]
        const name = `${a} ${b} ${c} ${d}`
        expect(keys.add(a, b, c, d)).toBe(!met.has(name))
        met.add(name)
      }
    }
  }))

  it('tells 10,000 keys apart that agree in all bits but those of one word', () => {
    for (const word of [0, 1, 2, 3]) {
      const keys = new DistinctKeys(10_000)
      keys.begin()
      const add = (value: number): boolean => keys.add(...[0, 1, 2, 3].map((at) => (at === word ? value << 16 : 7)) as [number, number, number, number])
      // Words beyond the first two do not choose the slot: fewer, since each is compared with all before it.
      const count = word < 2 ? 10_000 : 1_000
      expect(Array.from({ length: count }, (_, index) => add(index)).filter((isNew) => !isNew)).toEqual([])
      expect(Array.from({ length: count }, (_, index) => add(index)).filter((isNew) => isNew)).toEqual([])
    }
  })

  it('that is full takes no more, forgets none, and ends every search', () => {
    const keys = new DistinctKeys(12)
    keys.begin()
    for (let index = 0; index < 12; index += 1) expect(keys.add(index, 0, 0, 0)).toBe(true)
    for (let index = 100; index < 200; index += 1) keys.add(index, 0, 0, 0)
    expect(keys.add(199, 0, 0, 0)).toBe(true)
    for (let index = 0; index < 12; index += 1) expect(keys.add(index, 0, 0, 0)).toBe(false)
  })

  it('forgets a page when its epochs begin again', () => {
    // Slots of the first epoch, which comes again: a table that is not cleared takes them for its own.
    const again = new DistinctKeys(10)
    again.begin()
    again.add(1, 2, 3, 4)
    again.restart()
    expect(again.add(1, 2, 3, 4)).toBe(true)
  })

  it('has not met a key of zeros before it was added', () => {
    const keys = new DistinctKeys(10)
    keys.begin()
    expect([keys.add(0, 0, 0, 0), keys.add(0, 0, 0, 0)]).toEqual([true, false])
  })
})

describe('HrefHash', () => {
  const hash = new HrefHash(Buffer.alloc(32, 'a secret of thirty-two bytes and'))
  const of = (text: string, before = '"', origin = 'http://a.test'): string => {
    hash.begin(origin, 'utf-8')
    hash.hash(bytesOf(`${before}${text}"`), before.length, before.length + Buffer.byteLength(text))
    return [hash.a, hash.b, hash.c, hash.d].join(' ')
  }

  it('is that of the bytes, wherever they lie', () => {
    for (const text of ['', '/', '/a', '/ab', '/abc', '/abcd', '/abcdefgh?i=j']) expect(of(text, 'some bytes before "')).toBe(of(text))
  })

  it('differs with each byte, with the length, the origin, the encoding and the secret', () => {
    const text = '/path/to/a?page=1'
    const all = [of(text), of(`${text}\0`), of(`${text}\0\0`), of(text, '"', 'https://a.test'), of(text, '"', 'http://a.test:81')]
    for (let at = 0; at < text.length; at += 1) all.push(of(`${text.slice(0, at)}~${text.slice(at + 1)}`))
    hash.begin('http://a.test', 'windows-1252')
    hash.hash(bytesOf(text), 0, text.length)
    all.push([hash.a, hash.b, hash.c, hash.d].join(' '))
    const other = new HrefHash()
    other.begin('http://a.test', 'utf-8')
    other.hash(bytesOf(text), 0, text.length)
    all.push([other.a, other.b, other.c, other.d].join(' '))
    expect(new Set(all).size).toBe(all.length)
  })

  it('spreads hrefs that differ little, in each lane as chance would', () => {
    const count = 20_000
    const lanes = [0, 1, 2, 3].map(() => new Set<number>())
    const lows = new Set<number>()
    for (let index = 0; index < count; index += 1) {
      of(`/list?page=${index}`)
      for (const [lane, word] of [hash.a, hash.b, hash.c, hash.d].entries()) lanes[lane]!.add(word)
      lows.add(hash.a & 0xffff)
    }
    // Of 20,000 random words of 32 bits, 0.05 pairs agree; more than four agree once in 10^8 lanes.
    for (const lane of lanes) expect(lane.size).toBeGreaterThanOrEqual(count - 4)
    // 20,000 random numbers of 16 bits take 17,200 values, give or take 70.
    expect(lows.size).toBeGreaterThan(16_500)
  })

  it('mixes length and bytes in every lane, so that no lane could be left out', () => {
    const words = (text: string): number[] => of(text).split(' ').map(Number)
    const [one, longer] = [words('/a'), words('/a\0')]
    expect(one.map((word, lane) => word === longer[lane])).toEqual([false, false, false, false])
    // In a lane that is linear, one change makes one difference, whatever stands around it.
    const change = (around: string): number[] => words(`${around}0${around}`).map((word, lane) => word ^ words(`${around}1${around}`)[lane]!)
    const [here, there] = [change('/aaa'), change('/bbb')]
    expect(here.map((word, lane) => word === there[lane])).toEqual([false, false, false, false])
  })

  it('finds a byte that is not ASCII in every place', () => {
    for (const text of ['/abcdefgh', 'é', '/é', '/aé', '/abé', '/abcé', '/abcdé', 'é/abcdefg']) {
      of(text)
      expect(hash.isAscii, text).toBe(!text.includes('é'))
    }
  })
})

describe('HrefMemory', () => {
  const key = (a: number, b = a, c = a, d = a): { a: number; b: number; c: number; d: number } => ({ a, b, c, d })
  const found = new Int32Array(8)
  const find = (memory: HrefMemory, hash: ReturnType<typeof key>): number[] | undefined => (memory.find(hash, found, 4) ? [...found.subarray(4)] : undefined)
  const put = (memory: HrefMemory, { a, b, c, d }: ReturnType<typeof key>, value: number): void => memory.put(Int32Array.of(0, a, b, c, d), 1, new Int32Array(4).fill(value))

  it('answers the fingerprint that was put for this hash, all four words of it, or nothing', () => {
    const memory = new HrefMemory(1_024)
    put(memory, key(5), 50)
    expect(find(memory, key(5))).toEqual([50, 50, 50, 50])
    for (const near of [key(5, 6), key(5, 5, 6), key(5, 5, 5, 6), key(6)]) expect(find(memory, near)).toBeUndefined()
  })

  it('knows nothing before a put, and fills a set before it replaces', () => {
    const memory = new HrefMemory(128)
    expect(find(memory, key(0))).toBeUndefined()
    for (let value = 0; value < 4; value += 1) put(memory, key(value), value + 10)
    expect([0, 1, 2, 3].map((value) => find(memory, key(value))?.[0])).toEqual([10, 11, 12, 13])
  })

  it('keeps hashes with equal low bits apart, and never answers one for another', () => withSeeds(5, (random) => {
    const memory = new HrefMemory(1_024)
    for (let step = 0; step < 3_000; step += 1) {
      const hash = key(8 * integer(random, 3), integer(random, 3), integer(random, 3), integer(random, 3))
      const value = 1 + hash.a * 1_000 + hash.b * 100 + hash.c * 10 + hash.d
      const answer = find(memory, hash)
      if (answer === undefined) put(memory, hash, value)
      else expect(answer).toEqual([value, value, value, value])
    }
  }))

  it('keeps what is hit while what is met once streams through the same set', () => {
    const memory = new HrefMemory(128)
    put(memory, key(1), 1)
    for (let other = 10; other < 1_000; other += 1) {
      expect(find(memory, key(1)), `after ${other}`).toBeDefined()
      put(memory, key(other), other)
    }
    expect(find(memory, key(999))).toEqual([999, 999, 999, 999])
    expect([...Array(1_000).keys()].slice(10).filter((other) => find(memory, key(other)) !== undefined).length).toBeLessThanOrEqual(3)
  })

  it.each<[string, boolean]>([
    ['/', true], ['/a', true], ['//h', true], ['http://h', true], ['https://h/', true], ['HTTPS://h', true], ['hTTp://', true],
    ['', false], ['a', false], ['?', false], ['#', false], [' /a', false], ['\\a', false], ['http:a', false], ['http:/a', false], ['https:/', false],
    ['http', false], ['https:', false], ['httpss://', false], ['ftp://h', false], ['mailto:a', false], ['http:/\\h', false], ['http\t://h', false],
  ])('says of %j whether it is the same on every page of an origin: %s', (href, expected) => {
    const bytes = bytesOf(`"${href}//x`)
    expect(isRooted(bytes, 1, 1 + href.length)).toBe(expected)
  })
})
