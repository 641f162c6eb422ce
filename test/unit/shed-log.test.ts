import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { fullReasons, noCounters, type QueuedUrl } from '../../engine/core/types.ts'
import { ShedAccount } from '../../engine/shed-account.ts'
import { ShedLog, type ShedLine } from '../../engine/shed-log.ts'
import { TestClock, turn } from '../support/test-clock.ts'

const line = (url: string): ShedLine => ({ at: '2026-01-01T00:00:00.000Z', url, host: 'a.test', priority: 9, depth: 3, reason: 'page_ring', action: 'deferred' })

/** A file whose writes a test lets through, in part or not at all. */
class SlowFile {
  text = ''
  readonly asked: { bytes: Uint8Array; answer: (bytesWritten: number) => void; fail: (error: Error) => void }[] = []

  write(bytes: Uint8Array, offset: number): Promise<{ bytesWritten: number }> {
    const rest = bytes.subarray(offset)
    return new Promise((resolve, reject) => {
      this.asked.push({
        bytes: rest, fail: reject,
        answer: (bytesWritten) => {
          this.text += Buffer.from(rest.subarray(0, bytesWritten)).toString()
          resolve({ bytesWritten })
        },
      })
    })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async next(): Promise<SlowFile['asked'][number]> {
    while (this.asked.length === 0) await turn()
    return this.asked.shift()!
  }
}

describe('the shed log', () => {
  let dir: string
  let file: string

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-shed-log-'))
    file = join(dir, 'shed.jsonl')
  })

  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const open = (): Promise<ShedLog> => ShedLog.open(file, (error) => { throw error })

  it('has a line of JSON for each URL, is its owner\'s alone, and goes on behind what it holds', async () => {
    for (const names of [['1', '2'], ['3']]) {
      const log = await open()
      for (const name of names) log.write(line(`http://a.test/${name}`))
      await log.close()
    }
    expect(readFileSync(file, 'utf8').trim().split('\n').map((text) => JSON.parse(text) as ShedLine)).toEqual(['1', '2', '3'].map((name) => line(`http://a.test/${name}`)))
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('begins a new line where a process that died left half of one', async () => {
    writeFileSync(file, '{"at":"2026')
    const log = await open()
    log.write(line('http://a.test/'))
    await log.close()
    expect(readFileSync(file, 'utf8').split('\n')).toEqual(['{"at":"2026', JSON.stringify(line('http://a.test/')), ''])
  })

  it('that cannot be opened is refused in one line', async () => {
    chmodSync(dir, 0o700)
    for (const given of [dir, join(dir, 'none', 'shed.jsonl'), join(dir, 'a\0b')]) {
      await expect(ShedLog.open(given, () => {})).rejects.toMatchObject({ code: 'bad_option', message: expect.stringMatching(/^--shed-log: expected a file that can be written, given [^\n]*$/) })
    }
  })

  it('waits for a slow disk with a bounded number of bytes: more lines are counted and not written', async () => {
    const slow = new SlowFile()
    const log = new ShedLog(slow, { onFailure: () => {} })
    const bytes = JSON.stringify(line('x'.repeat(8_000))).length + 1
    const fit = Math.floor(limits.shedLogBytesMax / bytes)
    for (let at = 0; at < fit + 5; at += 1) log.write(line('x'.repeat(8_000)))
    expect(log.linesLost).toBe(5)
    const write = await slow.next()
    log.write(line('meanwhile'))
    write.answer(write.bytes.length)
    await turn()
    log.write(line('after'))
    for (const _ of ['meanwhile', 'after']) {
      const next = await slow.next()
      next.answer(next.bytes.length)
    }
    await log.close()
    expect([slow.text.split('\n').length - 1, log.linesLost]).toEqual([fit + 2, 5])
  })

  it('a disk without room costs the lines that it did not take, is told of once, and leaves no line glued to another', async () => {
    const slow = new SlowFile()
    const failures: unknown[] = []
    const log = new ShedLog(slow, { onFailure: (error) => failures.push(error) })
    for (const name of ['1', '2', '3']) log.write(line(name))
    const half = await slow.next()
    // One line and half of the second.
    half.answer(Math.round(half.bytes.length / 2))
    ;(await slow.next()).fail(new Error('ENOSPC'))
    await turn()
    log.write(line('4'))
    ;(await slow.next()).fail(new Error('ENOSPC'))
    await turn()
    log.write(line('5'))
    const last = await slow.next()
    last.answer(last.bytes.length)
    await log.close()
    const lines = slow.text.trimEnd().split('\n')
    expect([lines.length, lines[0], lines[2]]).toEqual([3, JSON.stringify(line('1')), JSON.stringify(line('5'))])
    expect([log.linesLost, failures.length]).toEqual([3, 1])
  })
})

it('what was shed is counted by reason since the opening, whether or not there is a line of it', () => {
  let refused = { ...noCounters.refused, host_full: 100 }
  const lines: ShedLine[] = []
  let lost = 0
  const log = { write: (text: ShedLine) => lines.push(text), lose: (count: number) => { lost += count }, linesLost: 0 } as unknown as ShedLog
  const account = new ShedAccount({ clock: new TestClock(), counters: () => ({ refused }), log })
  const url = { url: 'http://a.test/1', host: 'a.test', priority: 4, depth: 4 }
  account.deferred({ ...url, row: new Uint8Array(1), sequence: 1, fingerprint: new Uint8Array(16), attempts: 0 } satisfies QueuedUrl, 'consumer')
  refused = { ...refused, host_full: 103, store_full: 1, scope: 5 }
  account.stored({ shed: [{ ...url, reason: 'queue_full', action: 'dropped' }, { ...url, reason: 'host_full', action: 'refused' }] })
  account.stored({ shed: [] })
  const none = Object.fromEntries(fullReasons.map((reason) => [reason, 0]))
  expect(account.stats(true)).toMatchObject({ isShedding: true, deferred: { consumer: 1, page_ring: 0 }, dropped: { ...none, queue_full: 1 }, refused: { ...none, host_full: 3, store_full: 1 } })
  expect(lines.map(({ reason, action }) => [reason, action])).toEqual([['consumer', 'deferred'], ['queue_full', 'dropped'], ['host_full', 'refused']])
  expect(lines[0]).toEqual({ at: '2026-01-01T00:00:00.000Z', ...url, reason: 'consumer', action: 'deferred' })
  // Three links more were refused than the commit reported.
  expect(lost).toBe(3)
})
