import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { readExemptHosts } from '../../engine/web/robots-exempt.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-exempt-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))
const fileOf = (text: string): string => {
  const file = path.join(dir, 'hosts')
  fs.writeFileSync(file, text)
  return file
}

describe('--robots', () => {
  it('obey: nobody is exempt', () => {
    expect(readExemptHosts('obey')('a.test')).toBe(false)
  })

  it('FILE: those that it names are, by name or by what they end with, and nobody else', () => {
    const isExempt = readExemptHosts(fileOf('\uFEFF# by letter of 3 May\r\nExample.com\r\n\n  *.bücher.test # all of them\n192.0.2.1'))
    for (const host of ['example.com', 'a.xn--bcher-kva.test', 'a.b.xn--bcher-kva.test', '192.0.2.1']) expect([host, isExempt(host)]).toEqual([host, true])
    for (const host of ['www.example.com', 'xn--bcher-kva.test', 'test', '192.0.2.2']) expect([host, isExempt(host)]).toEqual([host, false])
  })

  it.each([['*', 1], ['a.test\nhttps://b.test/', 2], ['a.test b.test', 1]])('a line that is no name, or names all (%j), is refused with its number, in one line', (text, line) => {
    expect(() => readExemptHosts(fileOf(text))).toThrow(expect.objectContaining({ code: 'bad_option', message: expect.stringMatching(new RegExp(`^--robots: .*, line ${line}: expected a host name .*$`)) }))
  })

  it('a file that is missing or too large is refused', () => {
    expect(() => readExemptHosts(path.join(dir, 'obay'))).toThrow(expect.objectContaining({ code: 'file_unreadable', message: expect.stringMatching(/^--robots: expected a file, given .*obay/) }))
    expect(() => readExemptHosts(fileOf('#'.repeat(limits.robotsExemptBytesMax + 1)))).toThrow(expect.objectContaining({ code: 'bad_option' }))
  })
})
