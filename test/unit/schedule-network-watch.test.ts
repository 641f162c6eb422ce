import { describe, expect, test } from 'vitest'
import type { Random } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { NetworkWatch, type Blame, type Peer } from '../../engine/schedule/network-watch.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

class Net {
  readonly clock = new TestClock()
  readonly watch: NetworkWatch<Peer>
  readonly peers: readonly Peer[]
  changes = 0

  constructor({ hosts = 20, working = hosts, random = () => 0.5 }: { hosts?: number; working?: number; random?: Random } = {}) {
    this.peers = Array.from({ length: hosts }, () => ({ hasAnswered: false }))
    this.watch = new NetworkWatch<Peer>({ clock: this.clock, random, hostsWorking: () => working, onChange: () => { this.changes += 1 } })
  }

  /** Requests of the first so many hosts begin, one each. */
  begin(count: number, from = 0): readonly Request[] {
    return this.peers.slice(from, from + count).map((peer) => new Request(this, peer))
  }

  /** Every host answers in turn, one each so many milliseconds: the crawl is well under way. */
  warm(gapMs = 10): void {
    for (const request of this.begin(this.peers.length)) {
      this.clock.advance(gapMs)
      request.answer()
    }
  }
}

class Request {
  readonly net: Net
  readonly host: Peer
  readonly startedAtMs: number
  /** Undefined as long as it is held. */
  blame: Blame | undefined

  constructor(net: Net, host: Peer) {
    this.net = net
    this.host = host
    this.startedAtMs = net.clock.nowMs()
    net.watch.begun(host)
  }

  answer(): void {
    this.net.watch.answered(this.host)
    this.net.watch.ended(this.host)
  }

  fail(isLocal = false): this {
    this.net.watch.failed({ host: this.host, startedAtMs: this.startedAtMs, isLocal }, (blame) => {
      if (this.blame !== undefined) expect.unreachable('settled twice')
      this.blame = blame
      this.net.watch.ended(this.host)
    })
    return this
  }
}

const blames = (requests: readonly Request[]): readonly (Blame | undefined)[] => requests.map(({ blame }) => blame)

describe('a failure of the network', () => {
  test('is held until any host answers, and then it is the host that failed', () => {
    const net = new Net()
    net.warm()
    const [bad, other] = net.begin(2) as [Request, Request]
    net.clock.advance(5)
    bad.fail()
    expect([bad.blame, net.watch.heldCount]).toEqual([undefined, 1])
    net.clock.advance(1_000)
    other.answer()
    expect([bad.blame, net.watch.heldCount, net.clock.timersCount]).toEqual(['host', 0, 0])
  })

  test('is the host\'s after two seconds when the others are only slow', () => {
    const net = new Net()
    net.warm(1_000)
    const [bad] = net.begin(5) as [Request]
    bad.fail()
    net.clock.advance(limits.networkHoldMsMax - 1)
    expect(bad.blame).toBeUndefined()
    net.clock.advance(1)
    expect([bad.blame, net.watch.isDown]).toEqual(['host', false])
  })

  test('is the host\'s at once in a crawl of fewer than three hosts', () => {
    const net = new Net({ hosts: 2 })
    net.warm()
    expect(blames(net.begin(2).map((request) => request.fail()))).toEqual(['host', 'host'])
  })

  test('that can only be the network here is that in a crawl of one host, and of no host is anything charged', () => {
    const net = new Net({ hosts: 1 })
    const [request] = net.begin(1).map((begun) => begun.fail(true))
    expect([request!.blame, net.watch.isDown, net.watch.downs]).toEqual(['network', true, 1])
  })

  test('of three hosts of twenty at once is theirs: the others answer', async () => {
    await withSeeds(50, (random) => {
      const net = new Net({ random })
      net.warm()
      const requests = net.begin(20)
      net.clock.advance(integer(random, 10))
      const bad = requests.slice(0, 3).map((request) => request.fail())
      net.clock.advance(integer(random, 1_000))
      requests[10]!.answer()
      expect([blames(bad), net.watch.downs]).toEqual([['host', 'host', 'host'], 0])
    })
  })

  test('of hosts that never answered is theirs, however many there are: a list of dead names is no outage', () => {
    const net = new Net()
    const requests = net.begin(20)
    net.clock.advance(1_000)
    for (const request of requests) request.fail()
    net.clock.advance(limits.networkHoldMsMax)
    expect([new Set(blames(requests)), net.watch.downs]).toEqual([new Set(['host']), 0])
  })
})

test('a connection that a probe makes shows that the network was there, though its page never comes: what fails so is charged until somebody answers', () => {
  const net = new Net()
  net.warm(10)
  const requests = net.begin(20)
  for (const request of requests) request.fail()
  net.clock.advance(limits.networkHoldMsMax)
  expect(net.watch.isDown).toBe(true)
  net.clock.advance(limits.networkProbeMsMax)
  const reach = (index: number): Blame | undefined => {
    const [begun] = net.begin(1, index)
    let blame: Blame | undefined
    net.watch.failed({ host: begun!.host, startedAtMs: begun!.startedAtMs, isLocal: false, reachedAtMs: begun!.startedAtMs }, (whose) => { blame = whose })
    net.watch.ended(begun!.host)
    return blame
  }
  expect([reach(0), net.watch.isDown, net.watch.heldCount, reach(1)]).toEqual(['host', false, 0, 'host'])
  net.begin(1)[0]!.answer()
  net.begin(1, 3)
  expect(reach(2), 'after an answer').toBeUndefined()
})

describe('the network is down', () => {
  test('when most hosts with something under way fail with no answer between, and then nothing of it is charged', () => {
    const net = new Net()
    net.warm()
    const requests = net.begin(10)
    net.clock.advance(100)
    for (const request of requests.slice(0, 7)) request.fail()
    expect([net.watch.isDown, net.watch.heldCount]).toEqual([false, 7])
    requests[7]!.fail()
    expect([net.watch.isDown, net.watch.heldCount, net.changes]).toEqual([true, 0, 1])
    expect(new Set(blames(requests.slice(0, 8)))).toEqual(new Set(['network']))
    requests[8]!.fail()
    expect(requests[8]!.blame, 'what fails while it is down').toBe('network')
  })

  test('when three hosts failed and the crawl, answered each 10 ms until then, is silent for two seconds, though the others have not failed yet', () => {
    const net = new Net()
    net.warm(10)
    const requests = net.begin(20)
    net.clock.advance(1_000)
    for (const request of requests.slice(0, 3)) request.fail()
    net.clock.advance(1_000)
    expect(net.watch.isDown).toBe(false)
    net.clock.advance(limits.networkHoldMsMax)
    expect([net.watch.isDown, blames(requests.slice(0, 3))]).toEqual([true, ['network', 'network', 'network']])
  })

  test('so what fails first in a silence is held for longer than two seconds, until others tell', () => {
    const net = new Net()
    net.warm(10)
    const requests = net.begin(20)
    net.clock.advance(5_000)
    requests[0]!.fail()
    net.clock.advance(5_000)
    expect(requests[0]!.blame).toBeUndefined()
    for (const request of requests.slice(1, 3)) request.fail()
    expect([net.watch.isDown, requests[0]!.blame]).toEqual([true, 'network'])
  })

  test('but not for ever, when something is under way that takes very long', () => {
    const net = new Net()
    net.warm(10)
    const [bad] = net.begin(2) as [Request]
    net.clock.advance(5_000)
    bad.fail()
    net.clock.advance(limits.networkSilenceMsMax - 1)
    expect(bad.blame).toBeUndefined()
    net.clock.advance(limits.networkHoldMsMax)
    expect([bad.blame, net.watch.isDown]).toEqual(['host', false])
  })

  test('not when all that is under way has failed and that were two hosts', () => {
    const net = new Net()
    net.warm(10)
    const requests = net.begin(2)
    net.clock.advance(5_000)
    for (const request of requests) request.fail()
    net.clock.advance(limits.networkHoldMsMax)
    expect([net.watch.isDown, blames(requests)]).toEqual([false, ['host', 'host']])
  })

  test('until the first answer, and what was under way meanwhile and fails later is not charged', () => {
    const net = new Net()
    net.warm()
    const requests = net.begin(10)
    net.clock.advance(100)
    for (const request of requests.slice(0, 8)) request.fail()
    net.clock.advance(60_000)
    requests[8]!.answer()
    expect([net.watch.isDown, net.watch.downs, net.watch.downMs, net.changes]).toEqual([false, 1, 60_000, 2])
    expect(requests[9]!.fail().blame).toBe('network')
    const [fresh, other] = net.begin(2) as [Request, Request]
    net.clock.advance(1)
    fresh.fail()
    other.answer()
    expect(fresh.blame).toBe('host')
  })

  test('and one probe at a time goes out, rarer and rarer, with jitter, never further apart than fifteen seconds', async () => {
    await withSeeds(30, (random) => {
      const net = new Net({ random })
      net.warm()
      for (const request of net.begin(20)) request.fail()
      net.clock.advance(limits.networkHoldMsMax)
      expect(net.watch.isDown).toBe(true)
      const waits: number[] = []
      for (let i = 0; i < 12; i++) {
        const sinceMs = net.clock.nowMs()
        expect([net.watch.wantsProbe, net.watch.probeAtMs > sinceMs]).toEqual([waits.length === 0 && net.watch.probeAtMs <= sinceMs, net.watch.probeAtMs > sinceMs])
        net.clock.advance(Math.max(0, net.watch.probeAtMs - sinceMs))
        expect(net.watch.wantsProbe).toBe(true)
        const [probe] = net.begin(1, i)
        expect([net.watch.wantsProbe, net.watch.probeAtMs]).toEqual([false, Number.POSITIVE_INFINITY])
        probe!.fail()
        waits.push(net.watch.probeAtMs - net.clock.nowMs())
      }
      for (const [i, waitMs] of waits.entries()) {
        expect(waitMs).toBeGreaterThanOrEqual(limits.networkProbeMsMin / 2)
        expect(waitMs).toBeLessThanOrEqual(Math.min(limits.networkProbeMsMax, limits.networkProbeMsMin * 2 ** (i + 1)))
      }
      expect(new Set(waits).size, 'waits that differ').toBeGreaterThan(8)
    })
  })
})

test('over random requests, outages and answers each failure is settled once, in time, and one that an outage caused is never charged once it is known', async () => {
  let [charged, spared] = [0, 0]
  await withSeeds(40, (random) => {
    const net = new Net({ hosts: 30, random })
    net.warm(5)
    const underWay: Request[] = []
    const held = new Set<Request>()
    let [isAway, timersMax] = [false, 0]
    for (let i = 0; i < 1_000; i++) {
      if (random() < 0.002) isAway = !isAway
      const mayBegin = net.watch.isDown ? net.watch.wantsProbe : underWay.length + held.size < 20
      if (mayBegin) underWay.push(new Request(net, pick(random, net.peers)))
      net.clock.advance(integer(random, 40))
      for (const request of held) {
        if (request.blame === undefined) continue
        held.delete(request)
        if (request.blame === 'host') charged += 1
        else spared += 1
      }
      timersMax = Math.max(timersMax, net.clock.timersCount)
      if (underWay.length === 0 || random() < 0.3) continue
      const [request] = underWay.splice(integer(random, underWay.length), 1)
      if (!isAway && random() < 0.9) {
        request!.answer()
        if (net.watch.isDown || net.watch.heldCount > 0) expect.unreachable('an answer ends it all')
      } else {
        const wasDown = net.watch.isDown
        held.add(request!.fail())
        if (wasDown && request!.blame !== 'network') expect.unreachable('charged while the network is down')
      }
    }
    net.clock.advance(60_000)
    for (const request of underWay.splice(0)) held.add(request.fail())
    net.clock.advance(2 * limits.networkHoldMsMax)
    expect(timersMax, 'one timer for all').toBe(1)
    expect([...held].filter(({ blame }) => blame === undefined)).toEqual([])
    expect([net.watch.heldCount, net.clock.timersCount]).toEqual([0, 0])
  })
  expect(charged).toBeGreaterThan(process.env['SEED'] === undefined ? 100 : -1)
  expect(spared).toBeGreaterThan(process.env['SEED'] === undefined ? 100 : -1)
})
