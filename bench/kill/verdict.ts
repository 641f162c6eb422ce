/**
 * The verdict on a crawl that has completed at last, after all its deaths: what lies in its directory is the whole web,
 * once, and the web's server saw a polite crawler. Answers what is wrong, one line each. Reads only.
 */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { limits } from '../../engine/core/limits.ts'
import type { RequestEntry, Site } from '../../engine/demo/index.ts'
import type { PageRecord } from '../../engine/index.ts'
import { readWarcs, type WarcResponse } from '../warc-reader.ts'
import { askedKey, askedOf } from './ledger.ts'
import { expectedOutcomes, type Expected } from './truth.ts'

export interface Evidence {
  readonly dir: string
  readonly site: Site
  readonly records: readonly PageRecord[]
  readonly requests: readonly RequestEntry[]
  readonly retries: number
  readonly connections: number
  readonly kills: number
  readonly delayMs: number
  readonly unitOf: (host: string) => string
}

export async function faultsOfCrawl(evidence: Evidence): Promise<string[]> {
  return [...outcomeFaults(evidence), ...await warcFaults(evidence), ...gapFaults(evidence), ...requestFaults(evidence)]
}

/** The union is the whole web, with the outcomes that it says. */
function outcomeFaults({ site, records, retries, kills }: Evidence): string[] {
  const faults: string[] = []
  const byUrl = new Map(records.map((record) => [record.url, record]))
  const aside = new Set(setAside(records))
  if (3 * aside.size > kills) faults.push(`${aside.size} pages were set aside after ${kills} kills`)
  const expected = expectedOutcomes(site, retries, aside)
  const pages = aside.size === 0 ? [...site.allPages()].map(({ url }) => url) : expected.keys()
  for (const url of pages) if (!byUrl.has(url)) faults.push(`${url} is a page of the web and has no record`)
  const hasCut = records.some((record) => isCutBeforeItsEnd(site, record))
  for (const record of records) {
    const wanted = isCutBeforeItsEnd(site, record) ? { outcome: 'ok', status: 200 } : expected.get(record.url) ?? (hasCut ? ifPrivate(site, record) : undefined)
    if (wanted === undefined) faults.push(`${record.url} is not of this web`)
    for (const [name, value] of Object.entries(wanted ?? {})) {
      const is = record[name as keyof PageRecord]
      if (is !== value) faults.push(`${record.url}: ${name} is ${String(is)}, must be ${value} (code ${record.code}, ${record.attempts} attempts)`)
    }
    if (record.outcome === 'ok' && record.redirectedFrom?.includes(record.url) === true) faults.push(`${record.url} leads to itself`)
  }
  return faults
}

/** Pages that the crawl took for what ended its process; see truth.ts. */
export function setAside(records: readonly PageRecord[]): string[] {
  return records.filter(({ code }) => code === 'page_killed').map(({ url }) => url)
}

/** Links of a page that is cut may lead to private pages that no other page leads to. */
function ifPrivate(site: Site, { url }: PageRecord): Expected | undefined {
  return site.pageAt(url)?.kind === 'private' ? { outcome: 'robots_denied', code: 'robots_disallowed' } : undefined
}

/** A page that breaks off behind the bytes that are read of it is like any other that is cut. */
function isCutBeforeItsEnd(site: Site, { url, truncated }: PageRecord): boolean {
  return truncated === true && ['reset', 'truncated'].includes(site.pageAt(url)?.fault ?? '')
}

/** Each answer that was read lies in one WARC file, where its record says, as it was sent. */
async function warcFaults({ dir, records, requests }: Evidence): Promise<string[]> {
  let responses: WarcResponse[]
  try {
    responses = await readWarcs(dir)
  } catch (error) {
    return [`a WARC file cannot be read to its end: ${String(error)}`]
  }
  const faults: string[] = []
  const sent = new Set(requests.map(({ host, path, sha256 }) => `${host}${path} ${sha256}`))
  const placeOf = (file: string, offset: number): string => `${file} at ${offset}`
  const byPlace = new Map(responses.map((response) => [placeOf(response.file, response.offset), response]))
  for (const { url, outcome, status, warc } of records) {
    if (warc === undefined) {
      if (['ok', 'redirect', 'http_error'].includes(outcome)) faults.push(`${url} was answered and is in no WARC file`)
      continue
    }
    const place = placeOf(warc.file, warc.offset)
    const response = byPlace.get(place)
    byPlace.delete(place)
    if (response?.url !== url || response.status !== status) faults.push(`${url} is not in ${place}, but ${response?.url}`)
    else if (response.truncated === undefined && !sent.has(`${askedKey(url)} ${createHash('sha256').update(response.payload).digest('hex')}`)) faults.push(`${url} has other bytes in ${place} than were sent`)
  }
  for (const [place, { url }] of byPlace) faults.push(`${place} holds ${url}, which no record names`)
  return faults
}

/** From the crawler's clock to the server's: the request is written, travels, and is read. */
const onTheWayMsMax = 50

/**
 * By the server's clock no unit was asked sooner than its delay, across restarts too. A request that the server noticed
 * late makes the gap behind it look short, so that gap is counted from when it may have arrived. A crawler that forgets
 * its clocks when it dies is seen when the delay is longer than a start takes.
 */
function gapFaults({ requests, delayMs, unitOf }: Evidence): string[] {
  const faults: string[] = []
  const byUnit = new Map<string, RequestEntry[]>()
  for (const request of [...requests].sort((a, b) => a.t - b.t)) {
    const unit = unitOf(request.host)
    byUnit.set(unit, [...byUnit.get(unit) ?? [], request])
  }
  for (const [unit, asked] of byUnit) {
    for (const [at, request] of asked.entries()) {
      const before = asked[at - 1]
      const gapMs = before === undefined ? delayMs : request.t - before.t + (before.lateMsMax ?? 0)
      if (gapMs >= delayMs - onTheWayMsMax) continue
      const story = asked.slice(Math.max(0, at - 2), at + 2).map(({ t, lateMsMax = 0, host, path, status }) => `${host}${path} (${status}) at ${t.toFixed(0)} ms, noticed up to ${lateMsMax.toFixed(0)} ms late`)
      faults.push(`${unit} was asked ${gapMs.toFixed(1)} ms after the last time: ${story.join('; ')}`)
    }
  }
  return faults
}

/**
 * Each death costs a URL one request at most, and all URLs together no more than can be under way or unstored. Pages
 * that close the connection without an answer are asked for once more, uncharged, when that was a kept one; those that
 * answer 503 are probes of their host, and cost no attempt either.
 */
function requestFaults({ site, records, requests, kills, connections }: Evidence): string[] {
  const faults: string[] = []
  const asked = askedOf(requests)
  for (const { url, attempts } of records) {
    const count = asked.get(askedKey(url)) ?? 0
    if (count > attempts + kills && isCounted(site, url)) faults.push(`${url} was asked for ${count} times, with ${attempts} attempts and ${kills} kills`)
  }
  const inFlightMax = connections + limits.slotsMax + limits.commitQueueUrlsMax + limits.commitUrlsMax
  const repeated = refetched({ site, records, requests })
  if (repeated > kills * inFlightMax) faults.push(`${repeated} requests were repeated because of ${kills} kills`)
  return faults
}

/** Requests for pages beyond those that their records count. */
export function refetched({ site, records, requests }: Pick<Evidence, 'site' | 'records' | 'requests'>): number {
  const asked = askedOf(requests)
  const repeats = records.filter(({ url, timings }) => timings !== undefined && isCounted(site, url))
    .map(({ url, attempts }) => Math.max(0, (asked.get(askedKey(url)) ?? 0) - attempts))
  return repeats.reduce((sum, count) => sum + count, 0)
}

/** Every request for the page is one of its attempts. */
function isCounted(site: Site, url: string): boolean {
  return !['unavailable', 'no_answer'].includes(site.pageAt(url)?.fault ?? '')
}

/** Files of the sinks that do not end where the store says, and what else should have gone with the last process. */
export function leftovers(dir: string, lengths: ReadonlyMap<string, number>): string[] {
  const files = [...fs.readdirSync(dir), ...fs.readdirSync(join(dir, 'warc')).map((name) => `warc/${name}`)]
  const faults = files.filter((name) => /\.(jsonl|gz)$/.test(name) && fs.statSync(join(dir, name)).size !== (lengths.get(name) ?? 0))
    .map((name) => `${name} has ${fs.statSync(join(dir, name)).size} bytes, and ${lengths.get(name) ?? 0} are committed`)
  return files.includes('control.sock') ? [...faults, 'the control socket was left behind'] : faults
}
