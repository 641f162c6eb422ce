/**
 * Whether the tables agree with each other and with the counters. Reads and decodes every row, so it takes time in
 * proportion to the store, in one event turn; for `check` and for tests. Main thread. Never writes.
 */
import type { Counters, UrlState } from '../../engine/core/types.ts'
import { decodeCount, decodeJson, decodePageRow, decodeQueueRow, decodeState, factsOfHostRow, nameOfHostRow } from './codec.ts'
import type { Table, Tables } from './environment.ts'
import { hostKeyOf, keyText } from './layout.ts'

const terms = ['pending', 'done', 'failed', 'dropped', 'excluded'] as const satisfies readonly UrlState[]

export function checkTables(tables: Tables, counters: Counters): readonly string[] {
  const problems: string[] = []
  const expect = (what: string, found: number, expected: number): void => {
    if (found !== expected) problems.push(`${what}: found ${found}, expected ${expected}`)
  }
  const states = countStates(tables.seen, problems)
  for (const state of terms) expect(`URLs that are ${state}`, states.get(state) ?? 0, counters[state])
  expect('the sum of all states', terms.reduce((sum, state) => sum + counters[state], 0), counters.discovered)

  const rowsOfHost = checkQueue(tables, problems)
  let ready = 0
  for (const { key, value } of tables.ready.entries()) {
    ready += 1
    expect(`rows of host ${Buffer.from(key).toString('hex')}`, rowsOfHost.get(keyText(key)) ?? 0, decodeCount(value))
    if (tables.hosts.get(key) === undefined) problems.push(`host ${Buffer.from(key).toString('hex')} has rows and no record`)
  }
  expect('hosts with rows', ready, rowsOfHost.size)
  expect('rows of the queue', [...rowsOfHost.values()].reduce((sum, rows) => sum + rows, 0), counters.pending)
  decodeAll(tables.pages, decodePageRow, 'pages', problems)
  decodeAll(tables.hosts, (row) => [nameOfHostRow(row), factsOfHostRow(row)], 'hosts', problems)
  decodeAll(tables.robots, decodeJson, 'robots', problems)
  return problems
}

function countStates(seen: Table, problems: string[]): ReadonlyMap<UrlState, number> {
  const states = new Map<UrlState, number>()
  decodeAll(seen, (row) => {
    const state = decodeState(row)
    states.set(state, (states.get(state) ?? 0) + 1)
  }, 'seen', problems)
  return states
}

function checkQueue(tables: Tables, problems: string[]): ReadonlyMap<string, number> {
  const rowsOfHost = new Map<string, number>()
  for (const { key, value } of tables.queue.entries()) {
    const id = keyText(hostKeyOf(key))
    rowsOfHost.set(id, (rowsOfHost.get(id) ?? 0) + 1)
    try {
      decodeQueueRow(key, value, '')
    } catch (error) {
      problems.push(`queue row ${Buffer.from(key).toString('hex')}: ${String(error)}`)
    }
  }
  return rowsOfHost
}

function decodeAll(table: Table, decode: (value: Uint8Array) => unknown, name: string, problems: string[]): void {
  for (const { key, value } of table.entries()) {
    try {
      decode(value)
    } catch (error) {
      problems.push(`${name} row ${Buffer.from(key).toString('hex')}: ${String(error)}`)
    }
  }
}
