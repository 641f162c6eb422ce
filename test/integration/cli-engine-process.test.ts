/** The engine's process as its parent sees it, with real processes and small scripts in the engine's place. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { startEngineProcess, type EngineProcess } from '../../engine/cli/engine-process.ts'
import type { ToParent } from '../../engine/cli/messages.ts'
import { isAlive, run, until } from '../support/processes.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-engine-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))
const built = (name: string): string => new URL(`../../dist/engine/cli/${name}.js`, import.meta.url).href

let scripts = 0
function entryOf(source: string): string {
  const file = path.join(dir, `engine-${++scripts}.mjs`)
  fs.writeFileSync(file, source)
  return file
}

interface Started {
  readonly engine: EngineProcess
  readonly messages: unknown[]
  readonly lines: string[]
}

function start(source: string, options: { stdinFd?: number; keepsDump?: boolean } = {}): Started {
  const messages: ToParent[] = []
  const lines: string[] = []
  const engine = startEngineProcess({
    entry: entryOf(source), keepsDump: options.keepsDump ?? false, ...(options.stdinFd !== undefined && { stdinFd: options.stdinFd }),
    onMessage: (message) => messages.push(message), onLine: (line) => lines.push(line),
  })
  return { engine, messages, lines }
}

describe('an engine’s process', () => {
  it('has had every message handled and every line read when its end is known', async () => {
    const { engine, messages, lines } = start(`
      process.on('message', (message) => {
        for (let n = 0; n < 2_000; n++) process.send({ n, max: Infinity, got: message.type })
        console.log('one\\ntwo')
        process.stderr.write('three')
        process.send({ last: true }, () => process.exit(7))
      })`)
    engine.send({ type: 'stop' })
    expect(await engine.exited).toEqual({ code: 7, signal: null })
    expect(messages).toHaveLength(2_001)
    // JSON would have made it null.
    expect(messages[1_999]).toEqual({ n: 1_999, max: Number.POSITIVE_INFINITY, got: 'stop' })
    expect(lines.toSorted()).toEqual(['one', 'three', 'two'])
  })

  it('tells the signal it died of', async () => {
    const { engine } = start(`process.kill(process.pid, 'SIGSEGV'); setInterval(() => {}, 1000)`)
    expect(await engine.exited).toEqual({ code: null, signal: 'SIGSEGV' })
  })

  it.each([[false, 0], [true, 3]])('that V8 aborts tells the reason, and its dump only when asked for (%s)', async (keepsDump, linesMin) => {
    vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=16')
    const { engine, lines } = start(`
      console.error('before')
      const kept = []
      for (;;) kept.push(Array.from({ length: 1_000 }, (_, n) => ({ n })))`, { keepsDump })
    vi.unstubAllEnvs()
    const death = await engine.exited
    expect(death.signal).toBe('SIGABRT')
    expect(death.reason).toMatch(/heap/)
    expect(lines[0]).toBe('before')
    expect(lines.length - 1).toSatisfy((more: number) => (linesMin === 0 ? more === 0 : more >= linesMin))
  })

  it('says nothing of what LMDB finds in a damaged file, unless asked for', async () => {
    const said = ['internal error, index points to a 00 page!?', 'do_write error 0 4294936514', 'entry 32:', 'entry of mine']
    for (const keepsDump of [false, true]) {
      const { engine, lines } = start(`for (const line of ${JSON.stringify(said)}) console.error(line)`, { keepsDump })
      await engine.exited
      expect(lines).toEqual(keepsDump ? said : ['entry of mine'])
    }
  })

  it('reads the seed file that it was handed as its standard input', async () => {
    const file = path.join(dir, 'seeds.txt')
    fs.writeFileSync(file, 'http://a/\n')
    const fd = fs.openSync(file, 'r')
    const { engine, messages } = start(`
      import fs from 'node:fs'
      process.send({ text: fs.readFileSync(0, 'utf8') }, () => process.exit(0))`, { stdinFd: fd })
    fs.closeSync(fd)
    await engine.exited
    expect(messages).toEqual([{ text: 'http://a/\n' }])
  })

  it('is in a session of its own, so that Ctrl-C on a terminal does not reach it', async () => {
    const { engine, messages } = start(`process.send({ ready: true }); setInterval(() => {}, 1000)`)
    await until(() => messages.length > 0)
    const stat = fs.readFileSync(`/proc/${engine.pid}/stat`, 'utf8')
    const [, , group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    expect([Number(group), Number(session)]).toEqual([engine.pid, engine.pid])
    engine.kill()
    expect(await engine.exited).toEqual({ code: null, signal: 'SIGKILL' })
  })

  it('that cannot be started rejects', async () => {
    const engine = startEngineProcess({ entry: path.join(dir, 'no-such-file.mjs'), keepsDump: false, onMessage: () => undefined, onLine: () => undefined })
    expect((await engine.exited).code).toBe(1)
  })

  it.each([
    ['is idle', 'setInterval(() => {}, 1000)'],
    ['is busy and never comes back to its loop', 'setTimeout(() => { for (;;); }, 0)'],
  ])('ends when its parent is killed, also when it %s', async (_, work) => {
    const entry = entryOf(`
      import { watchParent } from ${JSON.stringify(built('lifeline'))}
      watchParent()
      process.send({ type: 'ready' })
      ${work}`)
    const parent = run([entryOf(`
      import { startEngineProcess } from ${JSON.stringify(built('engine-process'))}
      const engine = startEngineProcess({ entry: ${JSON.stringify(entry)}, keepsDump: false, onLine() {}, onMessage() { console.log('engine ' + engine.pid) } })`)])
    await parent.saw(/engine \d+/)
    const pid = Number(/engine (\d+)/.exec(parent.output.stdout)![1])
    expect(isAlive(pid)).toBe(true)
    parent.process.kill('SIGKILL')
    await until(() => !isAlive(pid))
  })

  it('with the watch on its parent still ends by itself when its work is done', async () => {
    const { engine } = start(`
      import { watchParent } from ${JSON.stringify(built('lifeline'))}
      watchParent()`)
    expect(await engine.exited).toEqual({ code: 0, signal: null })
  })
})
