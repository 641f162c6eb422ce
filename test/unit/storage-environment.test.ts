/** What becomes of a failed write: no room for now, which may be tried again, or the end of all writing. */
import * as os from 'node:os'
import { expect, test } from 'vitest'
import { Environment } from '../../storage/lmdb/environment.ts'

const { EDQUOT, EFBIG, EIO, ENOSPC, EACCES } = os.constants.errno
const MAP_FULL = -30_792
const PANIC = -30_795

/** An environment whose next commits fail with these codes as lmdb-js tells them; 0 is a success. */
function failing(codes: readonly number[], hasRoom = true) {
  const left = [...codes]
  const batch = (): Promise<void> => {
    const code = left.shift()!
    if (code === 0) return Promise.resolve()
    const commitError = Promise.reject(Object.assign(new Error(`code ${code}`), { code }))
    return Promise.reject(Object.assign(new Error('Commit failed (see commitError for details)'), { commitError }))
  }
  const pad = { keepAhead: () => {}, hasRoom: () => hasRoom, close: () => {} }
  return new Environment({ batch } as never, new Map(), { file: '', pad } as never)
}

async function codesOf(environment: Environment, times: number): Promise<readonly string[]> {
  const codes: string[] = []
  for (let time = 0; time < times; time += 1) {
    codes.push(await environment.write([]).then(() => 'ok', (error: { code: string }) => error.code))
  }
  return codes
}

test.each([['a full disk', ENOSPC], ['a full quota', EDQUOT], ['a limit on the size of files', EFBIG], ['a full map', MAP_FULL]])('%s refuses a commit, and takes it later', async (_, code) => {
  const environment = failing([code, code, 0, code, 0])
  expect(await codesOf(environment, 5)).toEqual(['disk_full', 'disk_full', 'ok', 'disk_full', 'ok'])
  expect(environment.failure).toBe(undefined)
})

test('an input/output error is a write that was cut short if the disk takes no more, and a broken disk if it does', async () => {
  expect(await codesOf(failing([EIO, 0], false), 2)).toEqual(['disk_full', 'ok'])
  expect(await codesOf(failing([EIO, 0], true), 2)).toEqual(['disk_failed', 'disk_failed'])
})

test.each([['a panic of LMDB', PANIC], ['anything else', EACCES]])('%s ends all writing: nothing is committed on top of it', async (_, code) => {
  const environment = failing([0, code, 0])
  expect(await codesOf(environment, 4)).toEqual(['ok', 'disk_failed', 'disk_failed', 'disk_failed'])
  expect(environment.failure).toMatchObject({ code: 'disk_failed', message: expect.stringContaining(`code ${code}`) as unknown })
})
