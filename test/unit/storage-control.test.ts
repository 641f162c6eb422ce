import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { acquireDir, askOwner, type DirLock } from '../../storage/control.ts'

const child = new URL('../fault/control-child.mjs', import.meta.url).pathname
let dir: string
let children: ChildProcess[]

beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-control-'))
  children = []
})

afterEach(() => {
  for (const running of children) running.kill('SIGKILL')
  fs.rmSync(dir, { recursive: true, force: true })
})

/** A process that tries to own the directory; its first line says whether it does. */
function start(waitMs = 0): { running: ChildProcess; told: Promise<string> } {
  const running = spawn(process.execPath, [child, dir, String(waitMs)], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(running)
  const told = once(running.stdout!, 'data').then(([data]) => String(data))
  return { running, told }
}

function temporaryLinks(): string[] {
  return fs.readdirSync(os.tmpdir()).filter((name) => name.startsWith('.sl-'))
}

async function kill(running: ChildProcess): Promise<void> {
  const exited = once(running, 'exit')
  running.kill('SIGKILL')
  await exited
}

test('a directory has one owner, and the second is told whose it is', async () => {
  const lock = await acquireDir(dir)
  await expect(acquireDir(dir, { waitMs: 0 })).rejects.toMatchObject({ code: 'store_in_use', message: expect.stringContaining(`process ${process.pid}`) })
  await lock.close()
  await (await acquireDir(dir, { waitMs: 0 })).close()
})

test('only the owner of the files may connect, and nothing is left after closing', async () => {
  const lock = await acquireDir(dir)
  expect(fs.readdirSync(dir)).toEqual(['control.sock'])
  expect(fs.statSync(path.join(dir, 'control.sock')).mode & 0o777).toBe(0o600)
  await Promise.all([lock.close(), lock.close()])
  expect(fs.readdirSync(dir)).toEqual([])
})

test('a directory that is missing is made, and one that cannot be is unusable', async () => {
  await (await acquireDir(path.join(dir, 'new', 'deep'))).close()
  fs.writeFileSync(path.join(dir, 'file'), '')
  await expect(acquireDir(path.join(dir, 'file'))).rejects.toMatchObject({ code: 'dir_unusable' })
  // Under /proc nothing can be made; Node's recursive mkdir tries for ever.
  if (fs.existsSync('/proc/self')) await expect(acquireDir('/proc/none/at/all')).rejects.toMatchObject({ code: 'dir_unusable' })
})

test('requests reach the owner and its answers come back, also from another process', async () => {
  const lock = await acquireDir(dir)
  // While it starts, and of a check or a change of the store, which answer nothing else.
  expect(await askOwner(dir, { cmd: 'status' })).toMatchObject({ ok: false, code: 'store_in_use', message: expect.stringContaining(`in use by process ${process.pid}, which is starting, or`) })
  lock.onRequest(async (request) => Promise.resolve({ ok: true, echo: request }))
  expect(await askOwner(dir, { cmd: 'status', text: 'ü\n' })).toEqual({ ok: true, echo: { cmd: 'status', text: 'ü\n' } })
  lock.onRequest(() => { throw new Error('no') })
  expect(await askOwner(dir, {})).toMatchObject({ ok: false, code: 'internal' })
  await lock.close()
  const other = start()
  expect(await other.told).toBe('owned\n')
  expect(await askOwner(dir, { cmd: 'pid' })).toEqual({ pid: other.running.pid })
})

test('nobody answers where nobody owns: an empty, a missing and a stale directory', async () => {
  expect(await askOwner(dir, {})).toBeUndefined()
  expect(await askOwner(path.join(dir, 'missing'), {})).toBeUndefined()
  const dead = start()
  await dead.told
  await kill(dead.running)
  expect(fs.existsSync(path.join(dir, 'control.sock'))).toBe(true)
  expect(await askOwner(dir, {})).toBeUndefined()
})

test('messages are bounded both ways, and one that is too long is answered by an error', async () => {
  const lock = await acquireDir(dir)
  lock.onRequest(() => ({ text: 'x'.repeat(limits.controlMessageBytesMax) }))
  expect(await askOwner(dir, {})).toMatchObject({ ok: false, message: expect.stringContaining('longer') })
  const connection = net.connect(path.join(dir, 'control.sock'))
  connection.on('error', () => connection.destroy())
  connection.write('y'.repeat(2 * limits.controlMessageBytesMax))
  connection.resume()
  await once(connection, 'close')
  lock.onRequest(() => ({ ok: true }))
  expect(await askOwner(dir, {})).toEqual({ ok: true })
  await lock.close()
})

test('who connects and says nothing is let go at the deadline', async () => {
  const lock = await acquireDir(dir)
  const silent = net.connect(path.join(dir, 'control.sock'))
  silent.resume()
  await once(silent, 'close')
  await lock.close()
})

test('the socket of a killed owner is replaced at once', async () => {
  const dead = start()
  expect(await dead.told).toBe('owned\n')
  await kill(dead.running)
  const lock = await acquireDir(dir, { waitMs: 0 })
  lock.onRequest(() => ({ mine: true }))
  expect(await askOwner(dir, {})).toEqual({ mine: true })
  await lock.close()
})

test('a start waits for an owner that is dying, and takes over when it is gone', async () => {
  const dying = start()
  await dying.told
  const waiting = acquireDir(dir, { waitMs: 30_000 })
  await kill(dying.running)
  await (await waiting).close()
})

test('a start waits for an owner that closes in its own process', async () => {
  const first = await acquireDir(dir)
  const waiting = acquireDir(dir, { waitMs: 30_000 })
  await first.close()
  await (await waiting).close()
})

test('an owner that answers nothing still owns', async () => {
  const hung = start()
  await hung.told
  hung.running.kill('SIGSTOP')
  await expect(acquireDir(dir, { waitMs: 10 })).rejects.toMatchObject({ code: 'store_in_use' })
})

test('of many starts that find one stale socket exactly one wins', async () => {
  for (let round = 0; round < 10; round += 1) {
    await leaveStaleSocket()
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => acquireDir(dir, { waitMs: 0 })))
    const won = tries.flatMap((each): DirLock[] => (each.status === 'fulfilled' ? [each.value] : []))
    expect(won).toHaveLength(1)
    won[0]!.onRequest(() => ({ winner: round }))
    expect(await askOwner(dir, {})).toEqual({ winner: round })
    await won[0]!.close()
  }
})

test('of many processes that find one stale socket exactly one wins', async () => {
  await leaveStaleSocket()
  const told = await Promise.all(Array.from({ length: 6 }, () => start().told))
  expect(told.sort()).toEqual([...Array.from({ length: 5 }, () => 'store_in_use\n'), 'owned\n'].sort())
})

/** A socket that was bound and whose server is gone; a link keeps Node from removing the path. */
async function leaveStaleSocket(): Promise<void> {
  const server = net.createServer()
  server.listen(path.join(dir, 'other.sock'))
  await once(server, 'listening')
  fs.renameSync(path.join(dir, 'other.sock'), path.join(dir, 'control.sock'))
  server.close()
  await once(server, 'close')
}

test('the lock holds when someone removes the socket file', { skip: process.platform !== 'linux' }, async () => {
  const lock = await acquireDir(dir)
  fs.rmSync(path.join(dir, 'control.sock'))
  await expect(acquireDir(dir, { waitMs: 0 })).rejects.toMatchObject({ code: 'store_in_use' })
  await lock.close()
})

test('a directory whose path is too long for a socket works the same', async () => {
  dir = path.join(dir, ...Array.from({ length: 8 }, () => 'a-rather-long-name'))
  expect(path.join(dir, 'control.sock').length).toBeGreaterThan(108)
  const before = temporaryLinks()
  const lock = await acquireDir(dir)
  lock.onRequest((request) => ({ request }))
  expect(await askOwner(dir, { deep: 1 })).toEqual({ request: { deep: 1 } })
  const other = start()
  expect(await other.told).toBe('store_in_use\n')
  await lock.close()
  expect(fs.readdirSync(dir)).toEqual([])
  expect(temporaryLinks()).toEqual(before)
})
