/**
 * Bounds what a response brings besides its body. undici counts the names and values of header fields and nothing else:
 * interim responses, blanks before a value, a reason phrase, blank lines before the status line, sizes and extensions of
 * chunks may come for ever, and none of it is told to a handler. So the socket is asked. Main thread.
 *
 * Invariant: of the bytes that undici has taken from the socket since the request was sent, no more than
 * `framingBytesMax` and `framingBytesPerBodyByteMax` for each byte of the body were not the body, give or take one read.
 */
import type { Socket } from 'node:net'
import { limits } from '../core/limits.ts'

/** Calls back as soon as it is too much. Answers the function that ends the watch. */
export function boundFraming(socket: Socket, bodyBytes: () => number, onExcess: () => void): () => void {
  // What lies in the stream's own buffer, as the rest of a paused response does, may be body.
  const taken = (): number => socket.bytesRead - socket.readableLength
  const startBytes = taken()
  const look = (): void => {
    const body = bodyBytes()
    if (taken() - startBytes - body > limits.framingBytesMax + limits.framingBytesPerBodyByteMax * body) onExcess()
  }
  // undici listens to the same event, and was there first.
  socket.on('readable', look)
  return () => void socket.off('readable', look)
}
