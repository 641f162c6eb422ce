/**
 * Where an export goes: standard output, or a file that is there when it is whole. It is written beside its name and
 * renamed at the end; what is no ordinary file (a pipe, a device) is written to as it is.
 */
import fs from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SluiceError } from '../../core/errors.ts'
import type { Chunks } from './formats.ts'

const signals = ['SIGINT', 'SIGTERM'] as const

/** Resolves when all is written, or when whoever reads standard output has seen enough. Throws `disk_failed` and what `chunks` throws. */
export async function writeToStandardOutput(chunks: Chunks): Promise<void> {
  try {
    await pipeline(streamOf(chunks), process.stdout, { end: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw outputError('standard output', error)
  }
}

/**
 * Resolves to whether the file is whole: it is not after SIGINT or SIGTERM, and then nothing is left of it. Throws
 * `bad_option` when it cannot be opened, `disk_failed`, and what `chunks` throws.
 */
export async function writeToFile(chunks: Chunks, output: string): Promise<boolean> {
  // An unset variable of a shell.
  if (output === '') throw new SluiceError('bad_option', '--output: expected a file, given ""')
  const { file, part } = placesOf(output)
  const stop = new AbortController()
  const stopped = (): void => stop.abort()
  for (const signal of signals) process.on(signal, stopped)
  try {
    await pipeline(streamOf(chunks), fs.createWriteStream(part, file === part ? {} : { flags: 'wx', flush: true }), { signal: stop.signal })
    if (file !== part) fs.renameSync(part, file)
    return true
  } catch (error) {
    if (file !== part) fs.rmSync(part, { force: true })
    if (stop.signal.aborted) return false
    throw outputError(output, error)
  } finally {
    for (const signal of signals) process.off(signal, stopped)
  }
}

/** The file that is asked for, and the one that is written. A link goes on pointing to its file. */
function placesOf(output: string): { readonly file: string; readonly part: string } {
  const stat = fs.statSync(output, { throwIfNoEntry: false })
  if (stat !== undefined && !stat.isFile()) return { file: output, part: output }
  const file = stat === undefined ? output : fs.realpathSync(output)
  return { file, part: `${file}.${process.pid}.part` }
}

/** One chunk at a time: a chunk is large. */
function streamOf(chunks: Chunks): Readable {
  return Readable.from(chunks, { objectMode: true, highWaterMark: 1 })
}

function outputError(output: string, error: unknown): unknown {
  const { syscall, message } = error as NodeJS.ErrnoException
  // What the system refused was refused to the output: what is read has its errors named already.
  if (syscall === undefined) return error
  if (syscall === 'open') return new SluiceError('bad_option', `--output: expected a file that can be written, given ${output}: ${message.replace(/, open '.*$/, '')}`, { cause: error })
  return new SluiceError('disk_failed', `${output} could not be written: ${message}`, { cause: error })
}
