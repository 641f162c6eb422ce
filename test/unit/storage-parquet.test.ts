/** Parquet files, read back by hyparquet: the writer has constants and the tree of a schema from it, and nothing that decodes. */
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { expect, it } from 'vitest'
import { ParquetRows } from '../../storage/sinks/parquet.ts'

const columns = (['text', 'integer', 'real', 'flag', 'time', 'json'] as const).map((kind) => ({ name: kind, kind }))

/** The file of some rows, taken as it grows. */
function fileOf(rows: readonly (readonly unknown[])[], rowsMax: number): ArrayBuffer {
  const file = new ParquetRows(columns, rowsMax)
  const pieces = rows.map((row) => {
    file.add(row)
    return file.take()
  })
  return new Uint8Array(Buffer.concat([...pieces, file.finish()])).buffer
}

const row = fc.tuple(
  fc.option(fc.string({ unit: 'binary' }), { nil: undefined }), fc.option(fc.maxSafeInteger(), { nil: undefined }), fc.option(fc.double(), { nil: undefined }),
  fc.option(fc.boolean(), { nil: undefined }), fc.option(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString()), { nil: undefined }),
  // The library leaves out a field that is called __proto__.
  fc.option(fc.jsonValue().filter((value) => value !== null && !JSON.stringify(value).includes('__proto__')), { nil: undefined }),
)

it('a Parquet file reads back as the cells that were written, whatever they hold and however many row groups they fill', async () => {
  await fc.assert(fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (rows) => {
    const file = fileOf(rows, 3)
    const read = await parquetReadObjects({ file })
    expect(read.map(({ text, integer, real, flag, time, json }) => [
      text ?? undefined, integer === null ? undefined : Number(integer), real ?? undefined, flag ?? undefined, (time as Date | null)?.toISOString(), json ?? undefined,
    ])).toEqual(rows.map((cells) => [...cells.slice(0, 5), cells[5] === undefined ? undefined : JSON.parse(JSON.stringify(cells[5]))]))
    expect(parquetMetadata(file).row_groups.map(({ num_rows }) => Number(num_rows)).slice(0, -1).every((count) => count === 3)).toBe(true)
  }), { numRuns: 50 })
})

it('a Parquet file has a type for each column: whole numbers, times and texts are not mixed up', () => {
  const { schema } = parquetMetadata(fileOf([], 3))
  expect(schema.slice(1).map(({ name, type, converted_type }) => [name, type, converted_type])).toEqual([
    ['text', 'BYTE_ARRAY', 'UTF8'], ['integer', 'INT64', undefined], ['real', 'DOUBLE', undefined], ['flag', 'BOOLEAN', undefined],
    ['time', 'INT64', 'TIMESTAMP_MILLIS'], ['json', 'BYTE_ARRAY', 'JSON'],
  ])
})

it('a Parquet file without rows has its columns, and an empty list of structs where row groups would be', async () => {
  const file = fileOf([], 3)
  expect(await parquetReadObjects({ file })).toEqual([])
  // Thrift's compact protocol: a list field, no elements, of the type struct; then the field with the program's name.
  expect(Buffer.from(file).includes(Buffer.from([0x19, 0x0c, 0x28, 6, ...Buffer.from('sluice')]))).toBe(true)
})

it('no more is held of a Parquet file than one row group, which is bounded in rows and in characters', () => {
  const longest = { rows: 0, texts: 0 }
  for (const [kind, text, rows] of [['rows', 'x', 60_000], ['texts', 'x'.repeat(1024 * 1024), 40]] as const) {
    const file = new ParquetRows([{ name: 'text', kind: 'text' }])
    for (let held = 0, row = 0; row < rows; row += 1) {
      file.add([text])
      held = file.take().length > 4 ? 0 : held + 1
      longest[kind] = Math.max(longest[kind], held)
    }
  }
  expect(longest).toEqual({ rows: 20_000 - 1, texts: 16 - 1 })
})

it.each([['text', 1], ['integer', 1.5], ['integer', '1'], ['real', '1'], ['flag', 'true'], ['time', 'yesterday'], ['text', null]] as const)('a cell of kind %s that is %j is refused with store_corrupt', (kind, value) => {
  expect(() => new ParquetRows([{ name: 'it', kind }]).add([value])).toThrow(expect.objectContaining({ code: 'store_corrupt' }))
})
