/**
 * One line of JSON on a socket, bounded in bytes and in time. Main thread. Invariant: a reader never holds more than
 * `limits.controlMessageBytesMax`, and every read ends: with a line, with the end of the other side, or at its deadline.
 */
import type { Socket } from 'node:net'
import { limits } from '../engine/core/limits.ts'

const NEWLINE = 0x0a

/** The next line as JSON; undefined when there is none: too long, not JSON, the other side ended, or too late. */
export function readLine(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let bytes = 0
    const finish = (line: unknown): void => {
      clearTimeout(timer)
      socket.off('data', take).off('close', end).off('end', end)
      // Without a reader the socket would stop and never tell that the other side has closed.
      socket.resume()
      resolve(line)
    }
    const end = (): void => finish(undefined)
    const take = (part: Buffer): void => {
      const at = part.indexOf(NEWLINE)
      parts.push(at < 0 ? part : part.subarray(0, at))
      bytes += part.length
      if (bytes > limits.controlMessageBytesMax) finish(undefined)
      else if (at >= 0) finish(parseLine(Buffer.concat(parts).toString()))
    }
    const timer = setTimeout(end, limits.controlAnswerMsMax)
    socket.on('data', take).once('close', end).once('end', end)
  })
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** A message that is too long for the reader is replaced by an error that is not. */
export function writeLine(socket: Socket, message: object): void {
  const line = `${JSON.stringify(message)}\n`
  const fits = Buffer.byteLength(line) <= limits.controlMessageBytesMax
  socket.write(fits ? line : `${JSON.stringify({ ok: false, code: 'internal', message: 'the message is longer than the control channel takes' })}\n`)
}
