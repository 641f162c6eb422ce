/** The corpus of real pages and conformance data, which stands beside the checkout and is no part of it. */
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = process.env['SLUICE_CORPUS'] ?? fileURLToPath(new URL('../../../shared/corpus', import.meta.url))

/** Path of a file or folder of the corpus, which SLUICE_CORPUS may name. It may be missing: whoever uses it skips with a reason then. */
export function corpusPath(name = ''): string {
  return path.resolve(root, name)
}
