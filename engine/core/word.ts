/** Hashes and fingerprints as numbers of 32 bits, as the tables of both threads hold and compare them. Leaf module. */

/** The four bytes at `at`, the first one lowest, as a signed number. */
export function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}
