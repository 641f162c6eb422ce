/**
 * Pauses a response without letting the server end the process. undici 7 asserts that its parser is not paused when
 * the end of the stream or a reset meets a response that is delimited by the end of its connection; the assertion is
 * thrown in a socket's event, where nobody can catch it (nodejs/undici #5360; the correction is in undici 8 only, and
 * test/integration/fetcher.test.ts shows when it is no longer needed). Main thread.
 *
 * So while a response is paused, two listeners stand before undici's own:
 *   end    nothing more comes, and nothing is left to read: go on reading, and undici ends the response as usual;
 *   error  a reset gets another code, so that undici takes it for what it is and not for a way to end a body.
 */
import type { Socket } from 'node:net'
import type { ResponseController } from './clients.ts'

/** Answers the function that goes on. */
export function pauseResponse(controller: ResponseController, socket: Socket): () => void {
  const resume = (): void => {
    socket.off('end', resume)
    socket.off('error', renameReset)
    controller.resume()
  }
  socket.prependListener('end', resume)
  socket.prependListener('error', renameReset)
  controller.pause()
  return resume
}

function renameReset(error: Error & { code?: string }): void {
  if (error.code === 'ECONNRESET') error.code = 'ECONNRESET_PAUSED'
}
