/**
 * A thread of the engine's process that ends this process when the parent is gone. The parent holds the other end of a
 * socket and writes nothing: whatever the parent dies of, the system closes it. The main loop may be busy just then, so
 * the watch has a loop of its own; SIGKILL, because nothing is lost by it and nothing can hold it up.
 */
import net from 'node:net'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

/** The file descriptor of the socket in the engine's process; after stdin, stdout, stderr and the IPC channel. */
export const lifelineFd = 4

/** Begins the watch; does not keep the process alive. */
export function watchParent(): void {
  const worker = new Worker(new URL(import.meta.url), { workerData: { lifelineFd }, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 } })
  worker.unref()
}

function hold(fd: number): void {
  const socket = new net.Socket({ fd, readable: true, writable: false })
  socket.on('error', () => undefined)
  socket.on('close', () => process.kill(process.pid, 'SIGKILL'))
  socket.resume()
}

const data = workerData as { readonly lifelineFd?: number } | null
if (!isMainThread && data?.lifelineFd !== undefined) hold(data.lifelineFd)
