/** A small client of the Redis protocol (RESP2): pipelines of commands over one socket, one pipeline at a time. */
import type { Socket } from 'node:net'

export type Command = readonly (string | Uint8Array)[]
export type Reply = Buffer | number | string | null | Error | readonly Reply[]

const CR = 0x0d
const ENCODED_BYTES_MIN = 1 << 16

export class RespClient {
  readonly #socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #at = 0
  #waiting: { readonly count: number; readonly replies: Reply[]; readonly resolve: (replies: Reply[]) => void } | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes) => this.#receive(bytes))
    // A server that ends after the client closed is meant to.
    socket.on('error', () => {})
  }

  /** Answers the reply of each command. An error reply is thrown, unless it is asked for. */
  async pipeline(commands: readonly Command[], withErrors = false): Promise<Reply[]> {
    if (commands.length === 0) return []
    const replies = await new Promise<Reply[]>((resolve) => {
      this.#waiting = { count: commands.length, replies: [], resolve }
      this.#socket.write(encode(commands))
    })
    const error = replies.find((reply) => reply instanceof Error)
    if (error !== undefined && !withErrors) throw error as Error
    return replies
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(bytes: Buffer): void {
    this.#received = this.#at === this.#received.length ? bytes : Buffer.concat([this.#received.subarray(this.#at), bytes])
    this.#at = 0
    const waiting = this.#waiting
    if (waiting === undefined) return
    while (waiting.replies.length < waiting.count) {
      const start = this.#at
      const reply = this.#read()
      if (reply === undefined) {
        this.#at = start
        return
      }
      waiting.replies.push(reply)
    }
    this.#waiting = undefined
    waiting.resolve(waiting.replies)
  }

  /** The next reply; undefined when it is not all there. */
  #read(): Reply | undefined {
    const end = this.#received.indexOf(CR, this.#at)
    if (end < 0 || end + 2 > this.#received.length) return undefined
    const type = this.#received[this.#at]
    const text = this.#received.toString('latin1', this.#at + 1, end)
    this.#at = end + 2
    if (type === 0x24 /* $ */) return this.#bulk(Number(text))
    if (type === 0x2a /* * */) return this.#array(Number(text))
    if (type === 0x3a /* : */) return Number(text)
    return type === 0x2d /* - */ ? new Error(text) : text
  }

  #bulk(length: number): Reply | undefined {
    if (length < 0) return null
    const start = this.#at
    if (start + length + 2 > this.#received.length) return undefined
    this.#at += length + 2
    // A copy: a view would hold all that came with it.
    return Buffer.from(this.#received.subarray(start, start + length))
  }

  #array(length: number): Reply | undefined {
    const replies: Reply[] = []
    for (let at = 0; at < length; at += 1) {
      const reply = this.#read()
      if (reply === undefined) return undefined
      replies.push(reply)
    }
    return replies
  }
}

/** All commands in one piece of memory. */
function encode(commands: readonly Command[]): Buffer {
  let buffer = Buffer.allocUnsafe(ENCODED_BYTES_MIN)
  let at = 0
  const reserve = (bytes: number): void => {
    if (at + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, at + bytes))
    buffer.copy(larger, 0, 0, at)
    buffer = larger
  }
  for (const command of commands) {
    reserve(16)
    at += buffer.write(`*${command.length}\r\n`, at, 'latin1')
    for (const part of command) {
      reserve(part.length + 32)
      at += buffer.write(`$${part.length}\r\n`, at, 'latin1')
      if (typeof part === 'string') at += buffer.write(part, at, 'latin1')
      else {
        buffer.set(part, at)
        at += part.length
      }
      buffer[at] = CR
      buffer[at + 1] = 0x0a
      at += 2
    }
  }
  return buffer.subarray(0, at)
}
