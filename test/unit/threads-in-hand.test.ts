import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { ownersMax } from '../../threads/arena.ts'
import { clearNotes, decodeNote, encodeNote, InHand, NOTE_BYTES, readNotes, type InHandNote } from '../../threads/in-hand.ts'
import { metaOf } from '../support/pool-rig.ts'
import { integer, withSeeds } from '../support/random.ts'

const dir = mkdtempSync(join(tmpdir(), 'sluice-in-hand-'))
const file = join(dir, 'notes')
afterAll(() => rmSync(dir, { recursive: true }))
beforeEach(() => clearNotes(file))

const meta = (sequence: number, url = `http://a/${sequence}`) => metaOf(url, { queued: { row: '00ff10', sequence } })

function randomNote(random: () => number): InHandNote {
  const row = Uint8Array.from({ length: 1 + integer(random, 64) }, () => integer(random, 256))
  return { row, sequence: integer(random, 2 ** 31) * 2 ** 15, url: `http://a/${'x'.repeat(integer(random, 2 * NOTE_BYTES))}` }
}

describe('the notes of pages in hand', () => {
  it('are those that were begun and not ended, one for each owner, and the file does not grow', () => {
    const [one, other] = [new InHand(file), new InHand(file)]
    one.begin(1, meta(5))
    other.begin(ownersMax - 1, meta(6))
    one.end(1)
    one.begin(1, meta(7))
    one.begin(2, meta(8))
    one.end(2)
    expect(readNotes(file)).toEqual([7, 6].map((sequence) => ({ row: Uint8Array.of(0, 255, 16), sequence, url: `http://a/${sequence}` })))
    expect(statSync(file).size).toBe(ownersMax * NOTE_BYTES)
    clearNotes(file)
    expect(readNotes(file)).toEqual([])
  })

  it('give back row and sequence, and of a long URL as much as fits', () => withSeeds(200, (random) => {
    const [note, record] = [randomNote(random), Buffer.alloc(NOTE_BYTES, 0xaa)]
    expect(encodeNote(note, record)).toBeLessThanOrEqual(NOTE_BYTES)
    const read = decodeNote(record)!
    expect({ ...read, url: '' }).toEqual({ ...note, url: '' })
    expect(note.url.startsWith(read.url)).toBe(true)
    expect(read.url.length).toBeGreaterThanOrEqual(Math.min(note.url.length, 400))
  }))

  it('that are torn or overwritten are ignored: a record that mixes two, or with one bit changed', () => withSeeds(200, (random) => {
    const [before, after] = [Buffer.alloc(NOTE_BYTES), Buffer.alloc(NOTE_BYTES)]
    const old = randomNote(random)
    encodeNote(old, before)
    const bytes = encodeNote({ ...old, sequence: old.sequence + 1, url: `${old.url}y` }, after)
    const cut = 11 + integer(random, 4)
    expect(decodeNote(Buffer.concat([after.subarray(0, cut), before.subarray(cut)]))).toBeUndefined()
    after[integer(random, bytes)]! ^= 1 << integer(random, 8)
    expect(decodeNote(after)).toBeUndefined()
  }))

  it('of another version, of random bytes, or in a file that is cut are ignored', () => withSeeds(50, (random) => {
    const record = Buffer.alloc(NOTE_BYTES)
    const bytes = encodeNote({ row: Uint8Array.of(1), sequence: 1, url: 'http://a/' }, record)
    for (const [version, isRead] of [[1, true], [2, false]] as const) {
      record[1] = version
      // Whole, as that version would have written it.
      record.writeUInt32BE(crc32(record.subarray(15, bytes), crc32(record.subarray(0, 11))), 11)
      expect(decodeNote(record) !== undefined).toBe(isRead)
    }
    writeFileSync(file, Buffer.from(Array.from({ length: integer(random, 3 * NOTE_BYTES) }, () => integer(random, 3))))
    expect(readNotes(file)).toEqual([])
  }))

  it('cost no page its result when there is no file, and are not made of pages that lie in no queue', () => {
    const nowhere = new InHand(join(dir, 'missing', 'notes'))
    nowhere.begin(1, meta(1))
    nowhere.end(1)
    const before = readFileSync(file)
    new InHand(file).begin(1, metaOf('http://a/'))
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readNotes(join(dir, 'missing'))).toEqual([])
  })
})
