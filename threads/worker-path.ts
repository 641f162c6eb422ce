/**
 * Where the compiled entry of the parse workers lies. Node 20 cannot load a worker from TypeScript source, so when this
 * module itself runs as source (under vitest), the entry is the one that `npm run build` wrote to dist/. Main thread.
 */
import { fileURLToPath } from 'node:url'

export function workerPath(): string {
  const here = import.meta.url
  const entry = here.endsWith('.ts') ? '../dist/threads/worker-entry.js' : './worker-entry.js'
  return fileURLToPath(new URL(entry, here))
}
