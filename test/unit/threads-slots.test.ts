import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { noLinks, type ParsedResult, type WarcPlace } from '../../engine/core/types.ts'
import { Arena, control, slotCountFor } from '../../threads/arena.ts'
import { encodeFrame } from '../../threads/frame.ts'
import { noRefusals } from '../../threads/html/links.ts'
import { LateWatch, type Watched } from '../../threads/late-watch.ts'
import { finish, take } from '../../threads/ring.ts'
import { RingWait } from '../../threads/ring-wait.ts'
import { Slots } from '../../threads/slots.ts'
import { takeTurn, type TurnResult } from '../../threads/turn.ts'
import { WarcFiles } from '../../threads/warc-files.ts'
import { TestClock } from '../support/test-clock.ts'
import { metaOf, pageOf, smallPage } from '../support/pool-rig.ts'

const KB = 1_024

function resultOf(text: string, warc?: WarcPlace): ParsedResult {
  return { outcome: 'ok', bodyBytes: 1, links: noLinks, linksKnown: 0, refused: noRefusals(), line: Buffer.from(text), ...(warc && { warc }) }
}

describe('Arena', () => {
  it('gives a worker what the main thread wrote, from its own view of the memory, slot by slot', () => {
    const arena = Arena.create(4 * KB, 3)
    const view = Arena.over(arena.memory)
    const pages = [0, 1, 2].map((id) => pageOf(`http://site.example/${id}?é`, String(id).repeat(4 * KB - id), { etag: `"${id}"` }))
    pages.forEach((page, slot) => arena.writePage(slot, page))
    pages.forEach((page, slot) => {
      const read = view.readPage(slot)
      expect(read.meta).toEqual(page.meta)
      expect(Buffer.from(read.headerBlock)).toEqual(Buffer.from(page.headerBlock))
      expect(Buffer.from(read.body)).toEqual(Buffer.concat(page.body))
    })
  })

  it('keeps a result apart from the body that it was made of', () => {
    const arena = Arena.create(4 * KB, 2)
    const body = 'b'.repeat(4 * KB)
    arena.writePage(0, pageOf('http://site.example/', body))
    arena.writePage(1, pageOf('http://site.example/1', body))
    arena.resultRoom(0).fill(7)
    arena.sealResult(0, limits.resultBytesInSlotMax, { overflow: false, warc: { file: 0, offset: 2 ** 40, length: 3 } })
    expect([0, 1].map((slot) => Buffer.from(arena.readPage(slot).body).toString() === body)).toEqual([true, true])
    expect(arena.result(0)!.byteLength).toBe(limits.resultBytesInSlotMax)
    expect(arena.warcEnd(0)).toEqual({ file: 0, end: 2 ** 40 + 3 })
    expect(arena.warcEnd(1)).toBeUndefined()
  })

  it('tells the worker the length of a chain of redirects that does not fit', () => {
    const arena = Arena.create(KB, 1)
    const long = `http://site.example/${'x'.repeat(limits.urlBytesMax - 30)}`
    arena.writePage(0, pageOf(long, 'x', { referrer: long, redirectedFrom: Array.from({ length: 15 }, () => long) }))
    expect(arena.readPage(0)).toMatchObject({ redirects: 15, meta: metaOf(long) })
  })

  it('refuses a body that is larger than its slot, or not as long as it says', () => {
    const arena = Arena.create(KB, 1)
    expect(() => arena.writePage(0, pageOf('http://a.example/', 'x'.repeat(KB + 1)))).toThrow(/fits into its slot/)
    expect(() => arena.writePage(0, { ...pageOf('http://a.example/', 'xx'), bodyBytes: 1 })).toThrow(/as long as its chunks/)
  })

  it('has as many slots as its budget allows, and never fewer than the least', () => {
    expect(slotCountFor(KB)).toBe(Math.floor(limits.arenaBytesMax / (164 * KB)))
    expect(slotCountFor(32 * 1_024 * KB)).toBe(limits.slotsMin)
  })
})

describe('Slots', () => {
  it('withdraws the pages that no worker has taken, and their tickets do not come out', async () => {
    const arena = Arena.create(4 * KB, 4)
    const slots = new Slots(arena)
    const [taken, waiting, other] = [1, 2, 3].map((id) => slots.fill(smallPage(id), 0))
    const inHand = take(arena.words, 9)!
    expect(slots.withdraw()).toEqual([waiting, other])
    expect(slots.ring.free).toBe(3)
    arena.sealResult(inHand.slot, encodeFrame(resultOf('done'), arena.resultRoom(inHand.slot)), { overflow: false, warc: undefined })
    expect(finish(arena.words, inHand, 9)).toBe(true)
    expect(slots.collect()).toMatchObject({ ticket: taken })
    expect(slots.collect()).toBeUndefined()
    expect([slots.ring.outstanding, slots.ring.free]).toEqual([0, 4])
    expect(slots.fill(smallPage(4), 0)).toBe(4)
  })
})

describe('Slots and a turn', () => {
  const parse = (result: ParsedResult) => async (): Promise<ParsedResult> => result
  const nowMs = (): number => 0
  const run = (arena: Arena, owner: number, result: ParsedResult): Promise<TurnResult> => takeTurn(arena, { owner, turnMs: 100 }, { parse: parse(result), nowMs })

  it('hold up what is done behind a result that is still on its way', async () => {
    const arena = Arena.create(KB, 4)
    const slots = new Slots(arena)
    const tickets = [1, 2, 3].map((id) => slots.fill(smallPage(id), 0))
    const turn = await run(arena, 1, resultOf('x'.repeat(2 * limits.resultBytesInSlotMax)))
    expect(turn.kind).toBe('overflow')
    await run(arena, 2, resultOf('small'))
    expect(slots.collect()).toBeUndefined()
    if (turn.kind === 'overflow') slots.arrived(turn.slot, turn.frame)
    expect([slots.collect()?.ticket, slots.collect()?.ticket, slots.collect()?.ticket]).toEqual(tickets)
    expect(slots.ring.free).toBe(4)
  })

  it('try a page again whose result was on its way when its worker died, and cut its WARC record', async () => {
    const arena = Arena.create(KB, 4)
    const slots = new Slots(arena)
    slots.fill(smallPage(1), 0)
    await run(arena, 1, resultOf('x', { file: 0, offset: 0, length: 50 }))
    const ticket = slots.fill(smallPage(2), 0)
    await run(arena, 1, resultOf('x'.repeat(2 * limits.resultBytesInSlotMax), { file: 0, offset: 50, length: 50 }))
    // A look that saw both done must not be remembered.
    slots.collect()
    expect(slots.takeBack(1, 'parse_crashed')).toBe(true)
    expect(slots.warcEnd(0)).toBe(50)
    expect(slots.collect()).toBeUndefined()
    await run(arena, 2, resultOf('second try', { file: 1, offset: 0, length: 9 }))
    expect(slots.collect()).toMatchObject({ ticket, result: { warc: { file: 1 } } })
    expect([slots.ring.outstanding, slots.ring.free]).toEqual([0, 4])
  })

  it('give a page up after so many owners, and do not count a record of its slot as read', async () => {
    const arena = Arena.create(KB, 1)
    const slots = new Slots(arena)
    slots.fill(smallPage(1), 0)
    await run(arena, 1, resultOf('x', { file: 0, offset: 0, length: 50 }))
    slots.collect()
    const ticket = slots.fill(smallPage(2), 0)
    for (let owner = 1; owner <= limits.parseTriesMax; owner += 1) {
      await run(arena, owner, resultOf('x'.repeat(2 * limits.resultBytesInSlotMax), { file: 0, offset: 50, length: 50 }))
      slots.takeBack(owner, 'parse_timeout')
    }
    expect(slots.warcEnd(0)).toBe(50)
    expect(slots.collect()).toEqual({ ticket, code: 'parse_timeout' })
    expect(slots.ring.free).toBe(1)
  })

  it('tell the oldest page that waits, that is in hand and that is done, and how long its worker had it', async () => {
    const arena = Arena.create(KB, 8)
    const slots = new Slots(arena)
    const none = Number.POSITIVE_INFINITY
    expect(slots.look()).toEqual({ free: 8, filled: 0, taken: 0, done: 0, oldestFilledAtMs: none, oldestUnreadAtMs: none, oldestDoneAtMs: none })
    let timeMs = 0
    // A turn that ends with its first page; the worker's clock moves while it reads.
    const one = (id: number, fromMs: number, forMs: number): Promise<TurnResult> => {
      timeMs = fromMs
      return takeTurn(arena, { owner: id, turnMs: 0 }, { parse: async () => { timeMs += forMs; return resultOf('x') }, nowMs: () => timeMs })
    }
    for (const id of [1, 2, 3, 4]) slots.fill(smallPage(id), 100 * id)
    await one(1, 1_000, 7)
    await one(2, 900, 30)
    take(arena.words, 3)
    expect(slots.look()).toEqual({ free: 4, filled: 1, taken: 1, done: 2, oldestFilledAtMs: 400, oldestUnreadAtMs: 300, oldestDoneAtMs: performance.timeOrigin + 930 })
    expect([slots.collect(), slots.collect()]).toMatchObject([{ parseMs: 7 }, { parseMs: 30 }])
    // Its worker died: the page comes behind the other, and is still the older one.
    slots.takeBack(3, 'parse_crashed')
    expect(slots.look()).toEqual({ free: 6, filled: 2, taken: 0, done: 0, oldestFilledAtMs: 300, oldestUnreadAtMs: 300, oldestDoneAtMs: none })
    for (const owner of [4, 5]) {
      take(arena.words, owner)
      slots.takeBack(owner, 'parse_crashed')
    }
    // Given up: done, and by no worker.
    expect(slots.look()).toMatchObject({ filled: 1, done: 1, oldestDoneAtMs: none })
  })

  it('give a damaged result a code', async () => {
    const arena = Arena.create(KB, 1)
    const slots = new Slots(arena)
    const ticket = slots.fill(smallPage(1), 0)
    await run(arena, 1, resultOf('x'))
    arena.resultRoom(0).fill(0xff, 0, 16)
    expect(slots.collect()).toEqual({ ticket, code: 'parse_crashed' })
  })

  it('end a turn at its time, sooner when another task waits, and never before a page is done', async () => {
    const arena = Arena.create(KB, 8)
    const slots = new Slots(arena)
    const pagesOf = async (ageMs: number): Promise<number> => {
      while (slots.ring.free > 0) slots.fill(smallPage(1), 0)
      let now = -ageMs
      let pages = 0
      await takeTurn(arena, { owner: 1, turnMs: 100 }, { nowMs: () => (now += ageMs), parse: async () => { pages += 1; return resultOf('x') } })
      while (slots.ring.counts().filled > 0) await run(arena, 2, resultOf('x'))
      while (slots.collect() !== undefined);
      return pages
    }
    expect([await pagesOf(0), await pagesOf(50), await pagesOf(100)]).toEqual([8, 2, 1])
    arena.control[control.tasksWaiting] = 1
    expect([await pagesOf(0), await pagesOf(10), await pagesOf(50)]).toEqual([8, 2, 1])
  })
})

describe('WarcFiles', () => {
  it('names each file under the owner that appends, before the file is begun, and begins new ones when asked', () => {
    const arena = Arena.create(KB, 1)
    arena.control[control.warcFileNext] = 7
    const begun: number[] = []
    const named: number[] = []
    const files = new WarcFiles(arena, (nextFile) => {
      let file: number | undefined
      return {
        append() {
          if (file === undefined) {
            file = nextFile()
            named.push(arena.warcFiles[1]!)
            begun.push(file)
          }
          return { file, offset: 0, length: 1 }
        },
        reopen() { file = undefined },
      }
    })
    const page = { meta: metaOf('http://a.example/'), headerBlock: new Uint8Array(0), body: new Uint8Array(0) }
    files.begin(1)
    expect(arena.warcFiles[1]).toBe(0)
    files.append(page)
    files.append(page)
    Atomics.add(arena.control, control.warcEpoch, 1)
    files.append(page)
    files.append(page)
    files.begin(2)
    expect([begun, named, Array.from(arena.warcFiles.subarray(1, 3))]).toEqual([[7, 8], [8, 9], [9, 9]])
  })
})

describe('LateWatch', () => {
  it('reports what lasts beyond its limit, once it has, and sets no timer for nothing', () => {
    const clock = new TestClock()
    let watched: Watched[] = [{ key: 'a', owner: 1, limitMs: 1_000 }]
    const late: string[] = []
    const watch = new LateWatch({ clock, deadlineMs: 1_000, look: () => watched, onLate: ({ key }) => late.push(key) })
    expect(clock.timersCount).toBe(0)
    watch.start()
    clock.advance(1_000)
    // The same owner has another page in hand: its time begins anew.
    watched = [{ key: 'b', owner: 1, limitMs: 1_000 }]
    clock.advance(1_000)
    expect(late).toEqual([])
    clock.advance(250)
    expect(late).toEqual(['b'])
    watched = []
    clock.advance(250)
    expect(clock.timersCount).toBe(0)
  })
})

describe('RingWait', () => {
  it('calls back after a change, and has no wait open once it is stopped', async () => {
    const words = new Int32Array(new SharedArrayBuffer(4))
    const changes: number[] = []
    const wait = new RingWait(words, 0, () => { changes.push(words[0]!) })
    wait.start()
    wait.start()
    // What a worker does after it made a slot done.
    Atomics.add(words, 0, 1)
    Atomics.notify(words, 0)
    while (changes.length === 0) await nextTurn()
    expect(wait.isOpen).toBe(true)
    wait.stop()
    while (wait.isOpen) await nextTurn()
    Atomics.add(words, 0, 1)
    expect([changes, Atomics.notify(words, 0)]).toEqual([[1], 0])
    wait.start()
    expect(wait.isOpen).toBe(true)
    wait.stop()
  })
})
