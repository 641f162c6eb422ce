/** The corpus of real pages and conformance data, which stands beside the checkout and is no part of it. */
import { fileURLToPath } from 'node:url'

/** Path of a file or folder of the corpus. It may be missing: whoever uses it skips with a reason then. */
export function corpusPath(name = ''): string {
  return fileURLToPath(new URL(`../../../shared/corpus/${name}`, import.meta.url)).replace(/\/$/, '')
}
