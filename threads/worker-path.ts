/**
 * Where the compiled entries of the worker threads lie. Node 20 cannot load a worker from TypeScript source, so when this
 * module itself runs as source (under vitest), the entry is the one that `npm run build` wrote to dist/. Main thread.
 */
import { fileURLToPath } from 'node:url'

/** `entry`: under this folder; by default that of the parse workers. */
export function workerPath(entry = 'worker-entry.js'): string {
  const here = import.meta.url
  return fileURLToPath(new URL(here.endsWith('.ts') ? `../dist/threads/${entry}` : `./${entry}`, here))
}
