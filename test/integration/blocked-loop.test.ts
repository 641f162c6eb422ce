import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFaultServer, type FaultServer } from '../support/fault-server.ts'
import { makeRig } from '../support/fetch-rig.ts'

const DEADLINE_MS = 400

/** Nothing else runs: no timer, no socket. */
function blockLoop(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs;);
}

describe('a loop that was blocked past the deadline of a fetch', () => {
  let server: FaultServer
  beforeAll(async () => { server = await startFaultServer() })
  afterAll(() => server.close())

  test('reads the answer that lies in the socket before it believes in a time-out', async () => {
    const rig = makeRig()
    const [fetched, peer] = await Promise.all([
      rig.get(server.url('/manual/blocked'), { deadlineMs: DEADLINE_MS }),
      server.taken('/manual/blocked').then((peer) => {
        peer.answer(200, ['Content-Type: text/html'], 'in time')
        blockLoop(2 * DEADLINE_MS)
        return peer
      }),
    ])
    expect(peer.requestForPath).toBe(1)
    expect(fetched).toMatchObject({ ok: true, status: 200 })
    await rig.fetcher.close()
  })

  test('lets go of it all the same when there is none', async () => {
    const rig = makeRig()
    const [fetched] = await Promise.all([
      rig.get(server.url('/manual/silent'), { deadlineMs: DEADLINE_MS }),
      server.taken('/manual/silent').then(() => blockLoop(2 * DEADLINE_MS)),
    ])
    expect(fetched).toMatchObject({ ok: false, code: 'timeout' })
    await rig.fetcher.close()
  })
})
