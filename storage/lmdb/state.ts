/**
 * The rows of the meta table: what the store knows of itself. Main thread. Invariant: a counter or a reason that came
 * later than the store is missing there, and is read as 0.
 *
 *   'layout' -> version (4)    'crawl' -> crawl id    'options' -> JSON    'sink:' name -> length (8)    'domains' -> nothing
 *   'state'  -> counters, next sequence, number of the last commit, clean flag, as JSON
 */
import * as crypto from 'node:crypto'
import { SluiceError } from '../../engine/core/errors.ts'
import { noCounters, type Counters } from '../../engine/core/types.ts'
import { Arena, decodeCount, decodeJson, encodeCount, encodeJson } from './codec.ts'
import type { Table, Write } from './environment.ts'
import { LAYOUT_VERSION, getNumber } from './layout.ts'

/** The row `state` of the meta table. */
export interface StoredState {
  readonly counters: Counters
  readonly sequence: number
  readonly commitNumber: number
  /** True only between a clean close and the next opening. */
  readonly clean: boolean
}

export const metaKeys = {
  layout: Buffer.from('layout'),
  crawlId: Buffer.from('crawl'),
  state: Buffer.from('state'),
  options: Buffer.from('options'),
  /** Present while the counts of domains are kept. */
  domains: Buffer.from('domains'),
} as const

/** Rows of the committed lengths: this, and the name of the file. */
export const SINK_PREFIX = 'sink:'

/** Throws `store_version` for a store that another version of the program made. */
export function checkVersion(meta: Table): void {
  const row = meta.get(metaKeys.layout)
  if (row === undefined || decodeCount(row) === LAYOUT_VERSION) return
  const version = decodeCount(row)
  const maker = version < LAYOUT_VERSION ? 'an older version of Sluice, which can still go on with it' : 'a newer version of Sluice'
  throw new SluiceError('store_version', `the store was made by ${maker}: it has layout ${version}, and this version knows layout ${LAYOUT_VERSION}`)
}

export function readState(meta: Table): StoredState {
  const state = decodeJson(meta.get(metaKeys.state)!) as unknown as StoredState
  const { refused, ...counters } = state.counters
  return { ...state, counters: { ...noCounters, ...counters, refused: { ...noCounters.refused, ...refused } } }
}

export function freshRows(): Write[] {
  return [
    { table: 'meta', key: metaKeys.layout, value: encodeCount(new Arena(), LAYOUT_VERSION) },
    { table: 'meta', key: metaKeys.crawlId, value: Buffer.from(crypto.randomUUID()) },
    { table: 'meta', key: metaKeys.options, value: encodeJson(new Arena(), {}) },
    stateRow({ counters: noCounters, sequence: 1, commitNumber: 0, clean: true }),
  ]
}

export function stateRow(state: StoredState): Write {
  return { table: 'meta', key: metaKeys.state, value: encodeJson(new Arena(), state) }
}

export function readLengths(meta: Table): Map<string, number> {
  const lengths = new Map<string, number>()
  const range = { start: Buffer.from(SINK_PREFIX), end: Buffer.from(`${SINK_PREFIX}\u{7f}`) }
  for (const { key, value } of meta.entries(range)) {
    lengths.set(Buffer.from(key).toString().slice(SINK_PREFIX.length), getNumber(value, 0))
  }
  return lengths
}

