import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { readHostList } from '../../engine/host-list.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-host-list-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))
const fileOf = (text: string): string => {
  const file = path.join(dir, 'hosts')
  fs.writeFileSync(file, text)
  return file
}

describe('a file of hosts', () => {
  it('names hosts by name or by what they end with, in any case and script, and nobody else', async () => {
    const hosts = await readHostList('--robots', fileOf('\uFEFF# by letter of 3 May\r\nExample.com\r\n\n  *.bücher.test. # all of them\n192.0.2.1\n[::1]'))
    for (const host of ['example.com', 'a.xn--bcher-kva.test', 'a.b.xn--bcher-kva.test', '192.0.2.1', '[::1]']) expect([host, hosts.has(host)]).toEqual([host, true])
    for (const host of ['www.example.com', 'xn--bcher-kva.test', 'test', '192.0.2.2']) expect([host, hosts.has(host)]).toEqual([host, false])
  })

  it.each([['*', 1], ['a.test\nhttps://b.test/', 2], ['a.test b.test', 1]])('with a line that is no name, or means all (%j), is refused with its number, in one line', async (text, line) => {
    await expect(readHostList('--robots', fileOf(text))).rejects.toMatchObject({ code: 'bad_option', message: expect.stringMatching(new RegExp(`^--robots: .*, line ${line}: expected a host name .*$`)) })
  })

  it('that is missing, is a folder, or has no end is refused unread', async () => {
    for (const file of [path.join(dir, 'obay'), dir, '/dev/zero']) {
      await expect(readHostList('--robots', file)).rejects.toMatchObject({ code: 'file_unreadable', message: expect.stringMatching(/^--robots: expected a file of host names, given .*/) })
    }
  })

  it('is read up to its bound, and refused beyond it', async () => {
    const text = 'a.test\n#'
    expect((await readHostList('--robots', fileOf(text.padEnd(limits.hostListBytesMax, 'x')))).has('a.test')).toBe(true)
    await expect(readHostList('--robots', fileOf(text.padEnd(limits.hostListBytesMax + 1, 'x')))).rejects.toMatchObject({ code: 'bad_option', message: expect.stringContaining(`at most ${limits.hostListBytesMax} bytes`) })
  })
})
