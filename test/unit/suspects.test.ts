import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { Candidate, Lease } from '../../engine/schedule/host.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { readSuspects } from '../../engine/suspect-file.ts'
import { Suspects, type SuspectStep } from '../../engine/suspects.ts'
import { InHand } from '../../threads/in-hand.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { metaOf } from '../support/pool-rig.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

const delayMs = 1_000
let dir: string
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), 'sluice-suspects-')) })
afterEach(() => rmSync(dir, { recursive: true }))

const rowOf = (sequence: number): string => sequence.toString(16).padStart(8, '0')

/** A crawl directory with a frontier that outlives its processes. */
class World {
  readonly clock = new TestClock()
  readonly frontier = new MemoryFrontier()
  /** As the store would tell. */
  openedUnclean = true
  suspects!: Suspects
  scheduler!: Scheduler

  queued(row: Uint8Array, sequence: number): QueuedUrl | undefined {
    if (Buffer.from(row).toString('hex') !== rowOf(sequence)) return undefined
    const found = ['a', 'b', 'c', 'd'].flatMap((host) => this.frontier.rowsOf(host)).find((url) => url.sequence === sequence)
    return found === undefined ? undefined : { ...found, row }
  }

  open(): this {
    const { frontier, clock, openedUnclean } = this
    this.suspects = Suspects.open(dir, { openedUnclean, queued: (row, sequence) => this.queued(row, sequence) })
    this.scheduler = new Scheduler({
      store: frontier, clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: () => {},
      options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs, retries: 2 },
    })
    this.scheduler.open(true, this.suspects.hosts)
    return this
  }

  /** The process dies with these in hand. */
  dieWith(...urls: readonly QueuedUrl[]): this {
    const inHand = new InHand(this.suspects.notesFile)
    urls.forEach(({ url, sequence }, index) => inHand.begin(index + 1, metaOf(url, { queued: { row: rowOf(sequence), sequence } })))
    return this.open()
  }

  next(): SuspectStep {
    return this.suspects.next(this.scheduler, { nowMs: this.clock.nowMs(), delayMs })
  }

  /** Waits until one may start, and starts it. */
  start(): Lease {
    return this.scheduler.start(this.#candidate('read'))
  }

  /** The same of one that is to be set aside. */
  setAside(): Candidate {
    const candidate = this.#candidate('set_aside')
    this.scheduler.take(candidate)
    return candidate
  }

  #candidate(kind: 'read' | 'set_aside'): Candidate {
    let step = this.next()
    while (step.kind === 'wait') {
      this.clock.advance(step.atMs - this.clock.nowMs())
      step = this.next()
    }
    if (step.kind !== kind) throw new Error(`${step.kind} instead of ${kind}`)
    return step.candidate
  }

  survive(lease: Lease): void {
    this.scheduler.release(lease, { ok: true })
    this.end(lease)
  }

  end({ url }: Candidate): void {
    this.frontier.end(url)
    this.scheduler.settled(url.host, url.sequence)
  }

  get file(): { sequence: number; deaths: number; isAlone: boolean }[] {
    return readSuspects(join(dir, 'in-hand', 'suspects.json')).map(({ sequence, deaths, isAlone }) => ({ sequence, deaths, isAlone }))
  }
}

describe('suspects', () => {
  it('are the pages in hand at an unclean stop that still are in the queue, each read alone when its host’s delay is over', () => {
    const world = new World()
    const [one, two, ended] = world.frontier.add('a', 3)
    const [other] = world.frontier.add('b', 5).slice(4)
    world.open()
    expect(world.next()).toEqual({ kind: 'none' })
    world.frontier.end(ended!)
    world.dieWith(one!, two!, other!, ended!)
    expect(world.next()).toEqual({ kind: 'wait', atMs: world.clock.nowMs() + delayMs })
    const order: number[] = []
    while (!world.suspects.isEmpty && world.next().kind !== 'none') {
      const lease = world.start()
      world.scheduler.sent(lease.host, lease)
      order.push(lease.url.sequence)
      world.survive(lease)
    }
    // The second of host a waits for its delay, so the other host's is first.
    expect(order).toEqual([one!, other!, two!].map(({ sequence }) => sequence))
    expect(world.file).toEqual([])
  })

  it('stay suspects when their host gets better URLs before they are read', () => {
    const world = new World()
    const [suspect] = world.frontier.add('a', 1, true)
    world.open().dieWith(suspect!)
    world.clock.advance(delayMs)
    expect(world.next()).toMatchObject({ kind: 'read', candidate: { url: { sequence: suspect!.sequence } } })
    // It waits for robots.txt; meanwhile somebody adds a URL of the first class.
    world.frontier.add('a')
    world.scheduler.grow('a')
    expect(world.next()).toMatchObject({ kind: 'read', candidate: { url: { sequence: suspect!.sequence } } })
    world.survive(world.scheduler.start({ host: world.scheduler.host('a')!, url: world.scheduler.host('a')!.claimed[0]! }))
    expect([world.next(), world.file]).toEqual([{ kind: 'none' }, []])
  })

  it('are nobody’s after a clean stop, whatever the notes say', () => {
    const world = new World()
    const [url] = world.frontier.add('a')
    world.open()
    world.openedUnclean = false
    world.dieWith(url!)
    expect(world.suspects.isEmpty).toBe(true)
    world.suspects.close()
    expect(existsSync(join(dir, 'in-hand'))).toBe(false)
  })

  it('are set aside after two deaths alone; deaths in company, and of a page that was not in hand, do not count', () => {
    const world = new World()
    const [url, beside] = world.frontier.add('a', 2)
    world.open().dieWith(url!, beside!)
    world.dieWith(url!)
    expect(world.file.map(({ deaths }) => deaths)).toEqual([0, 0])
    expect(world.start().url.sequence).toBe(url!.sequence)
    // While it was fetched.
    world.dieWith()
    expect(world.file.map(({ deaths }) => deaths)).toEqual([0, 0])
    world.start()
    world.dieWith(url!)
    expect(world.file).toContainEqual({ sequence: url!.sequence, deaths: 1, isAlone: false })
    world.start()
    world.dieWith(url!)
    const aside = world.setAside()
    expect(aside.url.sequence).toBe(url!.sequence)
    // As long as that is not stored it is known.
    expect(world.file).toContainEqual({ sequence: url!.sequence, deaths: 2, isAlone: false })
    world.end(aside)
    expect(world.start().url.sequence).toBe(beside!.sequence)
    world.dieWith()
    expect(world.file.map(({ sequence }) => sequence)).toEqual([beside!.sequence])
  })

  it('with most deaths come first, so that one is set aside before the next begins', () => {
    const world = new World()
    const urls = ['a', 'b', 'c', 'd'].flatMap((host) => world.frontier.add(host))
    world.open().dieWith(...urls)
    const killers: string[] = []
    for (let lives = 0; lives < 8; lives += 1) {
      const step = world.start().url
      killers.push(step.host)
      world.dieWith(step)
      if (lives % 2 === 1) world.end(world.setAside())
    }
    expect(killers.join('')).toBe('aabbccdd')
    expect(world.next()).toEqual({ kind: 'none' })
  })

  it('whose host rests for longer than its delay are let go, and keep their count', () => {
    const world = new World()
    const [url] = world.frontier.add('a')
    world.open().dieWith(url!)
    world.start()
    world.frontier.note('a', { backoffUntilMs: world.clock.wallMs() + 60_000 })
    world.dieWith(url!)
    expect(world.next()).toEqual({ kind: 'none' })
    expect(world.suspects.isEmpty).toBe(true)
    expect(world.file).toEqual([{ sequence: url!.sequence, deaths: 1, isAlone: false }])
    world.clock.advance(60_000)
    expect(world.scheduler.candidate()?.url.sequence).toBe(url!.sequence)
  })

  it('whose fetch was put off for a moment are read alone after it, those whose fetch failed are suspects no more', () => {
    const world = new World()
    const [url] = world.frontier.add('a')
    world.open().dieWith(url!)
    const lease = world.start()
    world.scheduler.giveBack(lease)
    expect(world.next().kind).toBe('wait')
    const again = world.start()
    expect(again.url.sequence).toBe(url!.sequence)
    expect(world.scheduler.release(again, { ok: false, code: 'bad_http' })).toEqual({ kind: 'fail' })
    world.end(again)
    expect(world.next()).toEqual({ kind: 'none' })
    expect(world.file).toEqual([])
  })

  it('that were not read before a clean stop are known at the next opening; the notes are gone', () => {
    const world = new World()
    const [url] = world.frontier.add('a')
    world.open().dieWith(url!)
    world.suspects.close()
    expect(existsSync(join(dir, 'in-hand', 'notes'))).toBe(false)
    world.openedUnclean = false
    expect(world.open().suspects.isEmpty).toBe(false)
    world.survive(world.start())
    world.next()
    world.suspects.close()
    expect(existsSync(join(dir, 'in-hand'))).toBe(false)
  })

  it.each([
    ['is no JSON', '{"version":1,'],
    ['is of another version', '{"version":2,"suspects":[{"row":"00","sequence":0,"url":"http://a/0","deaths":2,"isAlone":false}]}'],
    ['has nonsense in its rows', '{"version":1,"suspects":[null,1,{"row":"0","sequence":0,"url":"","deaths":0,"isAlone":true},{"row":"00","sequence":-1,"url":"","deaths":0,"isAlone":true}]}'],
    ['is of another crawl', `{"version":1,"suspects":[{"row":"${rowOf(0)}","sequence":0,"url":"http://elsewhere/","deaths":2,"isAlone":false}]}`],
  ])('in a file that %s are none', (_, text) => {
    const world = new World()
    world.frontier.add('a')
    world.open()
    writeFileSync(join(dir, 'in-hand', 'suspects.json'), text)
    expect(world.open().suspects.isEmpty).toBe(true)
  })

  it('come to an end whatever happens to them: each is read alone, set aside, ended or let go, with at most two deaths', () => withSeeds(30, (random) => {
    // Those that were let go stay in the file, and are nobody of the next world.
    rmSync(join(dir, 'in-hand'), { recursive: true, force: true })
    const world = new World()
    const urls = ['a', 'b', 'c'].flatMap((host) => world.frontier.add(host, 1 + integer(random, 4)))
    const deaths = new Map<number, number>()
    world.open().dieWith(...urls.filter(() => random() < 0.7))
    let steps = 0
    for (let step = world.next(); step.kind !== 'none'; step = world.next()) {
      expect(steps += 1).toBeLessThan(200)
      if (step.kind === 'wait') {
        world.clock.advance(step.atMs - world.clock.nowMs())
        continue
      }
      const { sequence } = step.candidate.url
      if (step.kind === 'set_aside') {
        expect(deaths.get(sequence)).toBe(2)
        world.scheduler.take(step.candidate)
        world.end(step.candidate)
        continue
      }
      const lease = world.scheduler.start(step.candidate)
      const end = pick(random, ['survives', 'dies', 'rests', 'fails'] as const)
      if (end === 'dies') {
        deaths.set(sequence, (deaths.get(sequence) ?? 0) + 1)
        world.dieWith(lease.url)
      } else if (end === 'survives') {
        world.survive(lease)
      } else if (world.scheduler.release(lease, { ok: false, code: end === 'rests' ? 'connect_refused' : 'bad_http' }).kind === 'fail') {
        world.end(lease)
      }
    }
    expect(Math.max(0, ...deaths.values())).toBeLessThanOrEqual(2)
    world.suspects.close()
    expect(existsSync(join(dir, 'in-hand'))).toBe(world.file.length > 0)
  }))

  it('are written so that people can read them', () => {
    const world = new World()
    const [url] = world.frontier.add('a')
    world.open().dieWith(url!)
    expect(readFileSync(join(dir, 'in-hand', 'suspects.json'), 'utf8')).toContain('"url":"http://a/0"')
  })
})
