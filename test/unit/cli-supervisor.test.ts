import { describe, expect, it } from 'vitest'
import type { Death, EngineProcess } from '../../engine/cli/engine-process.ts'
import type { StartMessage, ToChild, ToParent } from '../../engine/cli/messages.ts'
import { isSpent, remainingLimits } from '../../engine/cli/run-limits.ts'
import { Supervisor, type Ending } from '../../engine/cli/supervisor.ts'
import { countersWith, summaryWith } from '../support/cli.ts'
import { TestClock, turn } from '../support/test-clock.ts'

/** An engine whose messages and death a test decides. */
class FakeEngine implements EngineProcess {
  readonly pid = 1
  readonly received: ToChild[] = []
  readonly withSeeds: boolean
  readonly exited: Promise<Death>
  kills = 0
  #exit: (death: Death) => void = () => undefined
  readonly #onMessage: (message: ToParent) => void

  constructor(onMessage: (message: ToParent) => void, withSeeds: boolean) {
    this.#onMessage = onMessage
    this.withSeeds = withSeeds
    this.exited = new Promise((resolve) => { this.#exit = resolve })
  }

  send(message: ToChild): void {
    this.received.push(message)
  }

  kill(): void {
    this.kills += 1
    this.die({ code: null, signal: 'SIGKILL' })
  }

  say(message: ToParent): void {
    this.#onMessage(message)
  }

  opened(pages = 0, listen?: string): void {
    this.say({ type: 'opened', isContinued: pages > 0, changedOptions: [], counters: countersWith({ pages, wireBytes: pages * 10 }), ...(listen !== undefined && { listen }) })
  }

  seeded(): void {
    this.say({ type: 'seeded', result: { added: 1, again: 0, known: 0, rejected: 0, usersLeftOut: 0, rejections: [] } })
  }

  die(death: Death): void {
    this.#exit(death)
  }
}

interface Rig {
  readonly clock: TestClock
  readonly engines: FakeEngine[]
  readonly deaths: (readonly [string, number])[]
  readonly supervisor: Supervisor
  readonly ending: Promise<Ending>
  /** The engine that runs now. */
  engine(): FakeEngine
}

function rig(options: { seeds?: StartMessage['seeds']; canReread?: boolean } = {}): Rig {
  const clock = new TestClock()
  const engines: FakeEngine[] = []
  const deaths: (readonly [string, number])[] = []
  const seeds = options.seeds ?? { urls: ['http://a/'] }
  const supervisor = new Supervisor({
    clock, dir: './crawl', canReread: options.canReread ?? true,
    first: { type: 'start', crawl: {}, run: {}, seeds, statsEveryMs: 250, verbose: false },
    start(onMessage, withSeeds) {
      const engine = new FakeEngine(onMessage, withSeeds)
      engines.push(engine)
      return engine
    },
    onMessage: () => undefined,
    onDeath: (text, pauseMs) => deaths.push([text, pauseMs]),
  })
  return { clock, engines, deaths, supervisor, ending: supervisor.run(), engine: () => engines.at(-1)! }
}

const aborted: Death = { code: null, signal: 'SIGABRT', reason: 'Reached heap limit' }

describe('the supervisor', () => {
  it('gives the summary of an engine that ended, whatever it died of afterwards', async () => {
    const { clock, engine, ending, engines } = rig()
    engine().opened()
    engine().say({ type: 'ended', summary: summaryWith({ pages: 5 }), failures: { byCode: {}, seeds: 0 } })
    engine().die({ code: null, signal: 'SIGSEGV' })
    expect(await ending).toMatchObject({ kind: 'ended', summary: { state: 'complete', pagesThisRun: 5 } })
    expect(engines).toHaveLength(1)
    // A timer would keep the process alive.
    expect(clock.timersCount).toBe(0)
  })

  it('starts an engine that died of a signal again after 1, 2, 4 and 8 seconds, and gives up at the fifth death', async () => {
    const { clock, deaths, engine, engines, ending } = rig()
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000]) {
      engine().opened()
      engine().seeded()
      engine().die(aborted)
      await turn()
      const before = engines.length
      await clock.play(pauseMs - 1)
      expect(engines).toHaveLength(before)
      await clock.play(1)
      expect(engines).toHaveLength(before + 1)
    }
    expect(deaths).toEqual([1_000, 2_000, 4_000, 8_000].map((pauseMs) => ['died of SIGABRT (Reached heap limit)', pauseMs]))
    engine().opened()
    engine().die({ code: 134, signal: null })
    expect(await ending).toMatchObject({ kind: 'failed', code: 'engine_died', message: expect.stringMatching(/died 5 times within 10 minutes and stored nothing between \(at last it ended with exit code 134\)/) })
  })

  it('has an engine that is started again answer where the first one did, whatever port that was', async () => {
    const { clock, engine } = rig()
    engine().opened(0, '127.0.0.1:40123')
    expect(engine().received).toMatchObject([{ crawl: {} }])
    engine().die(aborted)
    await turn()
    await clock.play(1_000)
    expect(engine().received).toMatchObject([{ type: 'start', crawl: { listen: '127.0.0.1:40123' } }])
  })

  it('goes on as long as something is stored between deaths, with pauses that begin anew, and gives up when nothing is', async () => {
    const { clock, deaths, engine, engines, ending } = rig()
    // Three deaths for each page that ends the process, which is stored when it is set aside.
    const stored = [0, 10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40, 40, 40]
    for (const pages of stored.slice(0, -1)) {
      engine().opened(pages)
      engine().die(aborted)
      await turn()
      await clock.play(8_000)
    }
    expect(deaths.map(([, pauseMs]) => pauseMs)).toEqual([1, 1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4, 8].map((seconds) => seconds * 1_000))
    engine().opened(40)
    engine().die(aborted)
    expect(await ending).toMatchObject({ kind: 'failed', code: 'engine_died', message: expect.stringMatching(/stored nothing between .* same command, with --verbose/) })
    expect(engines).toHaveLength(stored.length)
  })

  it('takes a page that was set aside for something stored', async () => {
    const { clock, deaths, engine } = rig()
    for (const failed of [1, 2, 3]) {
      engine().say({ type: 'opened', isContinued: true, changedOptions: [], counters: countersWith({ failed }) })
      engine().die(aborted)
      await turn()
      await clock.play(1_000)
    }
    expect(deaths.map(([, pauseMs]) => pauseMs)).toEqual([1_000, 1_000, 1_000])
  })

  it('forgets deaths that are older than ten minutes', async () => {
    const { clock, deaths, engine, engines } = rig()
    for (let life = 0; life < 12; life++) {
      engine().opened()
      engine().die(aborted)
      await turn()
      await clock.play(151_000)
    }
    expect(engines).toHaveLength(13)
    expect(Math.max(...deaths.map(([, pauseMs]) => pauseMs))).toBe(8_000)
  })

  it('takes a death by a signal before the store was opened for a damaged store, and does not try again', async () => {
    const { engine, engines, ending } = rig()
    engine().die({ code: null, signal: 'SIGBUS' })
    expect(await ending).toMatchObject({ kind: 'failed', code: 'store_corrupt', message: expect.stringMatching(/died of SIGBUS while it opened the store in \.\/crawl/) })
    expect(engines).toHaveLength(1)
  })

  it('starts an engine again that somebody killed while it opened the store: that says nothing of the store', async () => {
    const { clock, engine, engines } = rig()
    engine().die({ code: null, signal: 'SIGKILL' })
    await turn()
    await clock.play(1_000)
    expect(engines).toHaveLength(2)
  })

  it('does not start an engine again that failed with a code, or ended without a word', async () => {
    const failed = rig()
    failed.engine().say({ type: 'failed', code: 'store_in_use', message: 'process 7 has it' })
    failed.engine().die({ code: 1, signal: null })
    expect(await failed.ending).toEqual({ kind: 'failed', code: 'store_in_use', message: 'process 7 has it' })

    const silent = rig()
    silent.engine().opened()
    silent.engine().die({ code: 0, signal: null })
    expect(await silent.ending).toMatchObject({ kind: 'failed', code: 'internal', message: expect.stringMatching(/exit code 0/) })
  })

  it('gives seeds to the first engine, and to the next ones only as long as none has stored them all', async () => {
    const { clock, engine, engines } = rig({ seeds: { urls: ['http://a/'], stdinName: 'seeds.txt' } })
    engine().opened()
    engine().die(aborted)
    await clock.play(1_000)
    engine().opened()
    engine().seeded()
    engine().die(aborted)
    await clock.play(2_000)
    expect(engines.map(({ withSeeds }) => withSeeds)).toEqual([true, true, false])
    expect(engines.map(({ received }) => (received[0] as StartMessage).seeds !== undefined)).toEqual([true, true, false])
  })

  it('fails when an engine died in the middle of seeds that cannot be read again', async () => {
    const { engine, ending } = rig({ seeds: { urls: [], stdinName: 'standard input' }, canReread: false })
    engine().opened()
    engine().die(aborted)
    expect(await ending).toMatchObject({ kind: 'failed', code: 'seeds_unreadable' })
  })

  it('tells the next engine what the run has used, and counts the pages of all engines as the run’s', async () => {
    const { clock, engine, ending } = rig()
    engine().opened(100)
    engine().seeded()
    clock.advance(5_000)
    engine().die(aborted)
    await clock.play(1_000)
    expect(engine().received[0]).toMatchObject({ baseline: { pages: 100, wireBytes: 1_000, elapsedMs: 6_000 } })
    engine().opened(140)
    engine().say({ type: 'ended', summary: summaryWith({ pages: 150, pagesThisRun: 10 }), failures: { byCode: {}, seeds: 0 } })
    engine().die({ code: 0, signal: null })
    expect(await ending).toMatchObject({ kind: 'ended', summary: { pages: 150, pagesThisRun: 50 } })
  })

  it('counts the failures of engines that died among the run’s, as often as they were told', async () => {
    const { clock, engine, ending } = rig()
    engine().opened()
    engine().seeded()
    for (const timeout of [1, 2]) engine().say({ type: 'failures', failures: { byCode: { timeout }, seeds: 1 } })
    engine().die(aborted)
    await clock.play(1_000)
    engine().opened(1)
    engine().say({ type: 'failures', failures: { byCode: { page_killed: 1 }, seeds: 0 } })
    engine().die(aborted)
    await clock.play(1_000)
    engine().opened(2)
    engine().say({ type: 'ended', summary: summaryWith(), failures: { byCode: { page_killed: 1, timeout: 1 }, seeds: 1 } })
    engine().die({ code: 0, signal: null })
    expect(await ending).toMatchObject({ kind: 'ended', failures: { byCode: { timeout: 3, page_killed: 2 }, seeds: 2 } })
  })

  it('asks once, kills at the second signal, and calls it stopped', async () => {
    const { clock, engine, ending, supervisor } = rig()
    engine().opened()
    expect(supervisor.stop()).toBe(true)
    expect(engine().received.at(-1)).toEqual({ type: 'stop' })
    clock.advance(99)
    // Ctrl-C below npm comes twice.
    expect(supervisor.stop()).toBe(false)
    expect(engine().kills).toBe(0)
    clock.advance(1)
    expect(supervisor.stop()).toBe(true)
    expect(engine().kills).toBe(1)
    expect(await ending).toEqual({ kind: 'stopped' })
  })

  it('kills an engine that does not end within the time to stop, also when it has told its end', async () => {
    const asked = rig()
    asked.engine().opened()
    asked.supervisor.stop()
    asked.clock.advance(1_999)
    expect(await asked.ending).toEqual({ kind: 'stopped' })
    expect(asked.engine().kills).toBe(1)

    const told = rig()
    told.engine().opened()
    told.engine().say({ type: 'ended', summary: summaryWith(), failures: { byCode: {}, seeds: 0 } })
    told.clock.advance(1_999)
    expect(await told.ending).toMatchObject({ kind: 'ended' })
    expect(told.engine().kills).toBe(1)
  })

  it('ends at once when it is stopped between two engines, and leaves no timer', async () => {
    const { clock, engine, engines, ending, supervisor } = rig()
    engine().opened()
    engine().die(aborted)
    await turn()
    supervisor.stop()
    expect(await ending).toEqual({ kind: 'stopped' })
    await clock.play(60_000)
    expect(engines).toHaveLength(1)
    expect(clock.timersCount).toBe(0)
  })

  it('does not start an engine again that died while it was being stopped', async () => {
    const { engine, engines, ending, supervisor } = rig()
    engine().opened()
    supervisor.stop()
    engine().die({ code: null, signal: 'SIGTERM' })
    expect(await ending).toEqual({ kind: 'stopped' })
    expect(engines).toHaveLength(1)
  })
})

describe('the limits of a run that was started again', () => {
  it('are what the engines before have left of them', () => {
    const limits = { maxPages: 100, maxBytes: Number.POSITIVE_INFINITY, maxTimeMs: 60_000 }
    const baseline = { pages: 1_000, wireBytes: 5, elapsedMs: 20_000 }
    expect(remainingLimits(limits, { pages: 1_000, wireBytes: 5 }, undefined)).toEqual(limits)
    const left = remainingLimits(limits, { pages: 1_060, wireBytes: 500 }, baseline)
    expect(left).toEqual({ maxPages: 40, maxBytes: Number.POSITIVE_INFINITY, maxTimeMs: 40_000 })
    expect(isSpent(left)).toBe(false)
    expect(isSpent(remainingLimits(limits, { pages: 1_100, wireBytes: 500 }, baseline))).toBe(true)
    expect(isSpent(remainingLimits(limits, { pages: 1_000, wireBytes: 5 }, { ...baseline, elapsedMs: 60_000 }))).toBe(true)
  })
})
