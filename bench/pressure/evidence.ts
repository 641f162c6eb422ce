/** What a run's directory and its server's log say when the crawler is closed. Reads only. */
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { RequestEntry, Site } from '../../engine/demo/index.ts'
import type { PageRecord } from '../../engine/index.ts'
import type { Evidence } from './scenario.ts'

type Found = Pick<Evidence, 'records' | 'recordUrls' | 'pagesNotOk' | 'pagesWithoutRecord' | 'othersWithoutRecord' | 'answeredWithoutRecord' | 'recordsWithoutAnswer'>

export interface Sources {
  readonly dir: string
  readonly logFile: string
  readonly site: Site
  readonly concerned: ReadonlySet<string>
}

export async function readEvidence({ dir, logFile, site, concerned }: Sources): Promise<Found> {
  const answered = new Set<string>()
  for await (const { host, path, status } of linesOf<RequestEntry>(logFile)) if (status === 200) answered.add(`${host}${path}`)
  const ends = new Map<string, string>()
  let records = 0
  for (const name of await readdir(dir)) {
    if (!/^pages-\d+\.jsonl$/.test(name)) continue
    for await (const { url, outcome, code } of linesOf<PageRecord>(join(dir, name))) {
      records += 1
      ends.set(url, code ?? outcome)
    }
  }
  const pagesNotOk: Record<string, number> = {}
  const found = { pagesWithoutRecord: 0, othersWithoutRecord: 0, answeredWithoutRecord: 0, recordsWithoutAnswer: 0 }
  for (const { url, host, path } of site.allPages()) {
    const [end, isAnswered] = [ends.get(url), answered.has(`${host}${path}`)]
    if (end === undefined) {
      found.pagesWithoutRecord += 1
      if (!concerned.has(host)) found.othersWithoutRecord += 1
      if (isAnswered) found.answeredWithoutRecord += 1
    } else if (end !== 'ok') pagesNotOk[end] = (pagesNotOk[end] ?? 0) + 1
    else if (!isAnswered) found.recordsWithoutAnswer += 1
  }
  return { records, recordUrls: ends.size, pagesNotOk, ...found }
}

async function* linesOf<T>(file: string): AsyncGenerator<T, void, void> {
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) yield JSON.parse(line) as T
}
