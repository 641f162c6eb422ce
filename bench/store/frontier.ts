/**
 * What a store must do to be measured: take URLs, hand out a host's best ones, and make a batch of ended pages with
 * their links last, each URL once. A claim leaves its rows where they are, as the engine's own contract says
 * (storage/store.ts): so whoever dies between claim and commit loses nothing, in every store that is measured.
 */
import type { BenchLinks } from './workload.ts'

/** A URL that was claimed. `at` is what the store needs to find it again. */
export interface Claimed {
  readonly host: string
  readonly url: string
  readonly fingerprint: Uint8Array
  readonly at: unknown
}

export interface EndedPage {
  readonly claimed: Claimed
  readonly links: BenchLinks
}

export interface HostClaim {
  readonly host: string
  readonly limit: number
}

export interface Frontier {
  /** New URLs, as the links of pages; those that are there already change nothing. */
  add(pages: readonly BenchLinks[]): Promise<void>
  /** For each of the hosts its best URLs that were not claimed before. */
  claim(hosts: readonly HostClaim[]): Promise<readonly (readonly Claimed[])[]>
  /** Takes the pages out of the queue, stores their outcome and their new links, all or nothing; answers how many were new. */
  commit(pages: readonly EndedPage[]): Promise<number>
  /** URLs in the queue. */
  queued(): Promise<number>
  /** What lies on the disk: `used` is in use, `file` what the files take. */
  bytes(): Promise<{ readonly used: number; readonly file: number }>
  /** CPU milliseconds and memory of a server beside this process; zeros without one. */
  server(): { readonly cpuMs: number; readonly ownBytes: number }
  close(): Promise<void>
}

export const STATUS_OK = 200
/** Bytes of a content hash, stored with each page. */
export const HASH_BYTES = 16
