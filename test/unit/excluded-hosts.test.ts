/** The file of excluded hosts, read again on an injected clock, and what its changes do to hosts in memory. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { ExcludedHosts } from '../../engine/excluded-hosts.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { until } from '../support/fetch-rig.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { TestClock } from '../support/test-clock.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  file = join(folder, 'excluded')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function opened(text: string) {
  writeFileSync(file, text)
  const clock = new TestClock()
  const broken: string[] = []
  let changes = 0
  const hosts = await ExcludedHosts.open({ file, clock, onBroken: ({ code, message }) => broken.push(`${code}: ${message}`) })
  hosts.onChange = () => { changes += 1 }
  /** Lets one look happen, and waits for the next to be due. */
  const look = async (): Promise<void> => {
    clock.advance(limits.excludeHostsLookMs)
    await until(() => clock.timersCount === 1)
  }
  return { clock, hosts, broken, look, get changes() { return changes } }
}

describe('the file of excluded hosts', () => {
  test('with a mistake opens no crawl', async () => {
    await expect(opened('a.test\nb c.test\n')).rejects.toMatchObject({ code: 'bad_option', message: expect.stringMatching(/^--exclude-hosts: .*, line 2: expected a host name .*, given "b c.test"$/) })
  })

  test('that is not there opens no crawl; without one nothing is excluded and no timer runs', async () => {
    const clock = new TestClock()
    await expect(ExcludedHosts.open({ file, clock, onBroken: () => {} })).rejects.toMatchObject({ code: 'file_unreadable', message: expect.stringContaining('ENOENT') })
    const none = await ExcludedHosts.open({ file: undefined, clock, onBroken: () => {} })
    expect([none.has('a.test'), clock.timersCount]).toEqual([false, 0])
  })

  test('is read again when it changes, and only then', async () => {
    const bed = await opened('a.test\n')
    await bed.look()
    expect(bed.changes).toBe(0)
    writeFileSync(file, 'b.test\nc.test\n')
    await bed.look()
    expect([bed.changes, bed.hosts.has('a.test'), bed.hosts.has('b.test')]).toEqual([1, false, true])
    // Moved into its place, with the same length.
    writeFileSync(`${file}.new`, 'd.test\ne.test\n')
    renameSync(`${file}.new`, file)
    await bed.look()
    expect([bed.changes, bed.hosts.has('b.test'), bed.hosts.has('d.test')]).toEqual([2, false, true])
    bed.hosts.close()
    expect(bed.clock.timersCount).toBe(0)
  })

  test('keeps what was in force while it cannot be used, and says so once for each version', async () => {
    const bed = await opened('a.test\n')
    writeFileSync(file, 'a b\n')
    for (let looks = 0; looks < 3; looks += 1) await bed.look()
    expect(bed.broken).toEqual([expect.stringMatching(/^bad_option: --exclude-hosts: .*line 1/)])
    rmSync(file)
    for (let looks = 0; looks < 3; looks += 1) await bed.look()
    expect(bed.broken).toHaveLength(2)
    expect([bed.changes, bed.hosts.has('a.test')]).toEqual([0, true])
    writeFileSync(file, 'b.test\n')
    await bed.look()
    expect([bed.changes, bed.hosts.has('a.test'), bed.hosts.has('b.test')]).toEqual([1, false, true])
    bed.hosts.close()
  })

  test('that is closed in the middle of a look changes nothing and looks no more', async () => {
    const bed = await opened('a.test\n')
    writeFileSync(file, 'b.test\n')
    bed.clock.advance(limits.excludeHostsLookMs)
    bed.hosts.close()
    await new Promise((resolve) => setImmediate(resolve))
    await import('node:fs/promises').then(({ stat }) => stat(file))
    expect([bed.changes, bed.clock.timersCount]).toEqual([0, 0])
  })
})

describe('hosts in memory', () => {
  test('end when the list names them and go on when it no longer does, but for those excluded by name', () => {
    const [clock, frontier, listed] = [new TestClock(), new MemoryFrontier(), new Set(['a.test'])]
    for (const host of ['a.test', 'b.test', 'c.test']) frontier.add(host, 2)
    const scheduler = new Scheduler({
      store: frontier, clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: () => {}, isExcluded: (host) => listed.has(host),
      options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: 0, retries: 2 },
    })
    scheduler.open(false)
    const ended = (): string[] => ['a.test', 'b.test', 'c.test'].filter((name) => scheduler.host(name)?.ended?.outcome === 'excluded')
    expect(ended()).toEqual(['a.test'])
    scheduler.exclude('c.test')
    listed.add('b.test')
    listed.add('c.test')
    scheduler.excludeListed()
    expect(ended()).toEqual(['a.test', 'b.test', 'c.test'])
    listed.clear()
    scheduler.excludeListed()
    expect(ended()).toEqual(['c.test'])
    expect(scheduler.candidate()).toBeDefined()
  })
})
