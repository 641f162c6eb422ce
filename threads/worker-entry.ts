/**
 * The entry of a parse worker: wires what a worker needs from what it was told at its start, and exports its tasks. The
 * only file of this folder that may know storage/. Nothing is loaded that could fail before the first task asks for it,
 * since a worker that fails while it starts makes Piscina start no others.
 */
import { workerData } from 'node:worker_threads'
import { limits } from '../engine/core/limits.ts'
import { productTokenOf } from '../engine/core/product-token.ts'
import type { ParsedResult } from '../engine/core/types.ts'
import { keyPolicyOf } from '../engine/core/url-key.ts'
import { KnownTable } from '../storage/known.ts'
import { QueryGrowth } from '../storage/query-growth.ts'
import { WarcWriter } from '../storage/sinks/warc.ts'
import { Arena, type SlotPage } from './arena.ts'
import { loadExtractor } from './extractor.ts'
import { LinkCollector, type LinkRules } from './html/links.ts'
import { SimHasher } from './html/simhash.ts'
import { InHand } from './in-hand.ts'
import { Inflater } from './inflate.ts'
import { parsePage, type ParseTools } from './parse-worker.ts'
import { readRobotsText, type RobotsText } from './robots-text.ts'
import { ScopeTable } from './scope-table.ts'
import { StageTimes } from './stage-times.ts'
import { takeTurn, type TurnResult, type TurnTask } from './turn.ts'
import { WarcFiles } from './warc-files.ts'
import type { WorkerOptions } from './worker-options.ts'

export interface RobotsTask {
  readonly body: Uint8Array
  readonly contentEncoding: string | undefined
  /** The body was cut on the wire. */
  readonly isCut: boolean
  /** Our product token, or the whole user agent. */
  readonly agent: string
}

const options = workerData as WorkerOptions
const arena = Arena.over(options.arena)
const nowMs = (): number => performance.now()
const stages = options.profile === undefined ? undefined : StageTimes.over(options.profile).clock()
let parseTools: Promise<Prepared> | undefined
let robotsInflater: Inflater | undefined

interface Prepared extends ParseTools {
  readonly sink: WarcFiles | undefined
  readonly inHand: InHand | undefined
}

async function scopeOf({ scope }: WorkerOptions): Promise<LinkRules['scope']> {
  if (scope === undefined) return undefined
  const table = ScopeTable.over(scope.table)
  // Loaded for those who ask for domains alone: the list of suffixes is a third of what a worker's start costs.
  const domainOf = scope.mode === 'domain' ? (await import('../engine/core/domain.ts')).registrableDomainOf : undefined
  return { has: (hash) => table.has(hash), domainOf }
}

/** The crawl is named in each file, as is who made it. */
function openWarc({ crawlId, userAgent, warcDir: dir }: WorkerOptions): WarcFiles | undefined {
  if (dir === undefined) return undefined
  const info = { software: 'sluice', 'http-header-user-agent': userAgent, isPartOf: crawlId }
  return new WarcFiles(arena, (nextFile) => new WarcWriter({ dir, nextFile, info }))
}

async function prepare(): Promise<Prepared> {
  const scope = await scopeOf(options)
  const { known, traps } = options
  const obey = new Set(options.obey)
  return {
    inflater: new Inflater(options.maxBodyBytes),
    collector: new LinkCollector({
      include: options.include.map((pattern) => new RegExp(pattern, 'u')),
      exclude: options.exclude.map((pattern) => new RegExp(pattern, 'u')),
      keyPolicy: keyPolicyOf(options.dedupe ?? []), obeysRel: obey.has('rel'),
      ...(scope && { scope }), ...(known && { known: KnownTable.over(known) }),
      ...(traps && { traps: { queries: QueryGrowth.over(traps.queries), queriesPerPathMax: traps.queriesPerPathMax } }),
    }),
    linkElements: options.linkElements,
    agent: productTokenOf(options.userAgent).toLowerCase(), obey,
    extractor: options.extractor === undefined ? undefined : await loadExtractor(options.extractor),
    ...(options.simhash === true && { simHasher: new SimHasher() }),
    sink: openWarc(options), stages,
    inHand: options.inHandFile === undefined ? undefined : new InHand(options.inHandFile),
    nowMs,
  }
}

function prepared(): Promise<Prepared> {
  return (parseTools ??= prepare())
}

/** Task: loads what pages will need, so that a fault in the extractor's module shows at the opening. */
export async function ready(): Promise<void> {
  await prepared()
}

async function parseNoted(page: SlotPage, owner: number, tools: Prepared): Promise<ParsedResult> {
  tools.inHand?.begin(owner, page.meta)
  try {
    return await parsePage(page, tools)
  } finally {
    tools.inHand?.end(owner)
  }
}

/** Task: a turn at the ring. */
export async function turn(task: TurnTask): Promise<TurnResult> {
  const tools = await prepared()
  tools.sink?.begin(task.owner)
  try {
    return await takeTurn(arena, task, { parse: (page) => parseNoted(page, task.owner, tools), nowMs, stages })
  } catch (error) {
    // What parsePage did not catch is a fault of the worker, which may have left a page half done: it dies of it.
    queueMicrotask(() => { throw error })
    return new Promise(() => {})
  }
}

/** Task: reads a robots.txt. Undefined: its coding is broken, so nobody knows what it forbids. */
export async function robots({ body, contentEncoding, isCut, agent }: RobotsTask): Promise<RobotsText | undefined> {
  robotsInflater ??= new Inflater(limits.robotsBytesMax)
  const inflated = await robotsInflater.inflate(body, contentEncoding, isCut)
  return inflated.ok ? readRobotsText(inflated.bytes, agent, inflated.truncated) : undefined
}
