/**
 * A parse pool with its collecting loop, and pages to put in. Workers are real threads of the compiled code.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../engine/core/clock.ts'
import type { FetchedPage, PageMeta } from '../../engine/core/types.ts'
import { ParsePool, type CollectedPage, type LostWorker, type ParsePoolOptions } from '../../threads/parse-pool.ts'

const encoder = new TextEncoder()

export function metaOf(url: string, meta: Partial<PageMeta> = {}): PageMeta {
  return {
    url, depth: 0, attempts: 1, status: 200, statusText: 'OK', fetchedAtMs: Date.UTC(2026, 0, 1),
    contentType: 'text/html', timings: {}, truncated: false, followLinks: true, ...meta,
  }
}

export function pageOf(url: string, body: string | Uint8Array, meta: Partial<PageMeta> = {}): FetchedPage {
  const bytes = typeof body === 'string' ? encoder.encode(body) : body
  return { meta: metaOf(url, meta), headerBlock: encoder.encode('Content-Type: text/html\r\n'), body: [bytes], bodyBytes: bytes.byteLength }
}

/** A small page with a few links. */
export function smallPage(id: number): FetchedPage {
  const links = Array.from({ length: 5 }, (_, index) => `<a href="/${id}/${index}">${index}</a>`).join('')
  return pageOf(`http://site.example/${id}`, `<title>page ${id}</title>${links}`)
}

export interface PoolRig {
  readonly pool: ParsePool
  readonly collected: CollectedPage[]
  readonly lost: LostWorker[]
  /** Fills the page, waiting for a slot if there is none. Answers its ticket. */
  put(page: FetchedPage): Promise<number>
  /** Resolves as soon as `holds` does; asked after every collecting and every loss. */
  until(holds: () => boolean): Promise<void>
  outcomeOf(ticket: number): string | undefined
  /** Makes a file beside the extractor, which may wait for it. */
  release(name: string): Promise<void>
  /** From now on a new worker cannot load the extractor. */
  breakExtractor(): Promise<void>
  close(): Promise<void>
}

type RigOptions = Partial<Omit<ParsePoolOptions, 'worker'>> & { worker?: Partial<ParsePoolOptions['worker']>; extractor?: string }

/** `extractor`: source of a module, written to a file of its own. */
export async function openRig({ worker, extractor, ...options }: RigOptions = {}): Promise<PoolRig> {
  const scratch = await mkdtemp(join(tmpdir(), 'sluice-pool-'))
  const module = join(scratch, 'extractor.mjs')
  if (extractor !== undefined) await writeFile(module, extractor)
  const pool = await ParsePool.open({
    threads: 1, maxBodyBytes: 16 * 1024, slots: 16, clock: systemClock, ...options,
    worker: { include: [], exclude: [], crawlId: 'test', userAgent: 'Sluice/0.1', ...worker, ...(extractor !== undefined && { extractor: module }) },
  })
  const collected: CollectedPage[] = []
  const lost: LostWorker[] = []
  const waiting = new Set<() => void>()
  const look = (): void => {
    collected.push(...pool.collect(1_000))
    for (const check of waiting) check()
  }
  pool.onProgress = look
  pool.onWorkerLost = (one) => {
    lost.push(one)
    for (const check of waiting) check()
  }
  const until = (holds: () => boolean): Promise<void> => new Promise((resolve) => {
    const check = (): void => {
      if (!holds()) return
      waiting.delete(check)
      resolve()
    }
    waiting.add(check)
    check()
  })
  return {
    pool, collected, lost, until,
    async put(page) {
      await until(() => pool.slotsFree > 0)
      const ticket = pool.fill(page)
      if (ticket === undefined) throw new Error('a free slot was not filled')
      return ticket
    },
    outcomeOf(ticket) {
      const page = collected.find((one) => one.ticket === ticket)
      if (page === undefined) return undefined
      return 'result' in page ? (page.result.code ?? page.result.outcome) : page.code
    },
    release: (name) => writeFile(join(scratch, name), ''),
    breakExtractor: () => writeFile(module, 'throw new Error("broken")'),
    async close() {
      await pool.close()
      await rm(scratch, { recursive: true, force: true })
    },
  }
}

/** The record line of a collected page. */
export function recordOf(page: CollectedPage | undefined): Record<string, unknown> {
  if (page === undefined || !('result' in page)) throw new Error(`no result: ${JSON.stringify(page)}`)
  return JSON.parse(`${new TextDecoder().decode(page.result.line)}}`) as Record<string, unknown>
}
