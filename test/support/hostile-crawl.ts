/** What a crawl of the whole hostile table is judged by, for the test and the benchmark of it. */
import type { PageRecord } from '../../engine/core/types.ts'
import { hostileRows } from './hostile-rows.ts'
import { hostOfRow } from './hostile-server.ts'

/** Links of hostile pages to themselves and to hosts that are none: each host of the table is asked for its one page. */
export const hostileLinks = ['//[^/]*\\.hostile\\.test[:/]', '//(?:a|(?:a.?)?b\\.test|xn--ab-[^/]*)[:/]'] as const

/** Rows that did not end as they must, as `name: expected, not found`. */
export function rowsAmiss(records: readonly PageRecord[]): readonly string[] {
  const found = new Map<string, string[]>()
  for (const { url, outcome, code } of records) {
    const host = new URL(url).hostname
    found.set(host, [...found.get(host) ?? [], `${outcome} ${code ?? ''}`.trim()])
  }
  return hostileRows.flatMap((row) => {
    const [expected, ends = []] = [`${row.outcome} ${row.code ?? ''}`.trim(), found.get(hostOfRow(row))]
    return ends.length === 1 && ends[0] === expected ? [] : [`${row.name}: ${expected}, not ${ends.join(' and ') || 'nothing'}`]
  })
}

/** Successful pages of these hosts. */
export function okPagesOf(records: readonly PageRecord[], hosts: { has(host: string): boolean }): readonly PageRecord[] {
  return records.filter(({ url, outcome }) => outcome === 'ok' && hosts.has(new URL(url).hostname))
}
