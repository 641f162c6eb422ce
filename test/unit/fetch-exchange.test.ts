import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { ByteBudget } from '../../engine/fetch/byte-budget.ts'
import type { Connection, ResponseHandler } from '../../engine/fetch/clients.ts'
import { Deadline } from '../../engine/fetch/deadline.ts'
import { exchange } from '../../engine/fetch/exchange.ts'
import { TestClock, turn } from '../support/test-clock.ts'

test('a request counts as sent when it has been written, however long that took', async () => {
  const clock = new TestClock()
  const sentAtMs: number[] = []
  // As undici does it: the handler is told, and then the socket is written.
  const send = (_path: string, _headers: readonly string[], handler: ResponseHandler): void => {
    handler.onRequestStart?.({} as Parameters<NonNullable<ResponseHandler['onRequestStart']>>[0], undefined)
    clock.advance(85)
  }
  const deadline = new Deadline(clock, 10_000)
  const ended = exchange({ socket: new Socket(), send, destroy: () => undefined } as unknown as Connection, {
    path: '/', headers: [], bodyBytesMax: 1_000, acceptBody: () => 'read', onSend: () => sentAtMs.push(clock.nowMs()), onBytes: () => {},
  }, { budget: new ByteBudget(1_000), clock, deadline })
  const startedAtMs = clock.nowMs() - 85
  await turn()
  expect(sentAtMs).toEqual([startedAtMs + 85])
  deadline.stop({ code: 'aborted', detail: 'the end of the test' })
  expect(await ended).toMatchObject({ kind: 'failed', code: 'aborted' })
})
