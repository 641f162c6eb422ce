/**
 * `sluice check`: whether everything in the directory of a crawl that is not running agrees. Counts are mended, the rest
 * is told.
 */
import { writeOut } from './batch.ts'
import { inOwnProcess } from './care-process.ts'
import type { CrawlCheck } from './care-tasks.ts'
import { count, plural } from './human.ts'
import { safeText } from './lines.ts'
import { checkCrawl, refuseRunning } from './owner.ts'

/** Resolves to the exit code: 0 when all agrees or was mended, 1 when problems remain. Throws as `openStore`. */
export async function runCheck({ dir, json }: { readonly dir: string; readonly json: boolean }): Promise<number> {
  checkCrawl(dir)
  await refuseRunning(dir)
  const { store, sinks } = await inOwnProcess<CrawlCheck>({ task: 'check', dir })
  const problems = [...store.problems, ...sinks.problems]
  const report = { ok: problems.length === 0, mended: store.mended, problems, missing: sinks.missing, rows: store.rows, records: sinks.records, warcRecords: sinks.warcRecords }
  await writeOut(json ? `${JSON.stringify(report)}\n` : `${textOf(report).map(safeText).join('\n')}\n`)
  return report.ok ? 0 : 1
}

interface Report extends Pick<CrawlCheck['store'], 'mended' | 'problems' | 'rows'>, Pick<CrawlCheck['sinks'], 'missing' | 'records' | 'warcRecords'> {}

function textOf({ mended, problems, missing, rows, records, warcRecords }: Report): readonly string[] {
  const sum = Object.values(rows).reduce((total, each) => total + each, 0)
  return [
    `checked ${plural(sum, 'row')} of the store, ${plural(records, 'page record')}, ${count(warcRecords)} of them with their place in a WARC file`,
    ...missing.map((name) => `not there, and not checked: ${name}`),
    ...mended.map((line) => `mended: ${line}`),
    ...problems.map((line) => `problem: ${line}`),
    problems.length > 0 ? `${plural(problems.length, 'problem')} left` : mended.length > 0 ? 'sound now' : 'sound',
  ]
}
