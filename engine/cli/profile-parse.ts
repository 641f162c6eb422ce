/**
 * `sluice profile parse`: how fast this machine reads these pages, and what the time goes into. The pages are read in
 * (profile-inputs), run through ring and workers (profile-pool), given to four parsers when the workers have ended
 * (profile-parsers), and what was measured is written (profile-report). Main thread.
 */
import fs from 'node:fs'
import { Session } from 'node:inspector/promises'
import os from 'node:os'
import path from 'node:path'
import { SluiceError } from '../core/errors.ts'
import { parseValue } from '../core/option-values.ts'
import { resolveCrawlOptions } from '../core/options.ts'
import { writeOut } from './batch.ts'
import { optionsOfFlags } from './flags.ts'
import { safeText } from './lines.ts'
import { readInputs, type ProfileInput } from './profile-inputs.ts'
import { compareParsers, type ParserBody, type ParserComparison } from './profile-parsers.ts'
import { profilePool, type PoolProfile } from './profile-pool.ts'
import { profileReport, profileText } from './profile-report.ts'

export interface ProfileParseOptions {
  readonly threads: number
  readonly maxBodyBytes: number
  /** The pages are run through the workers for so long, and through each all of them once at least. */
  readonly seconds: number
  readonly userAgent: string
  readonly extractor?: string
  readonly json: boolean
  readonly compare: boolean
  /** Folder for `.cpuprofile` files; absent: none are written. */
  readonly cpuProfDir?: string
}

export const secondsDefault = 3
const SECONDS_MAX = 3_600
/** Of so much the four parsers make a round in about three seconds; a larger set is sampled. */
const COMPARED_BYTES_MAX = 8 * 2 ** 20
/** Lines about single files; what is more is in the count of those skipped. */
const WARNINGS_MAX = 10

/** From the values of the flags. Throws `bad_option`, `extractor_unloadable` and, for the profiles' folder, `usage`. */
export function profileParseOptions(values: Readonly<Record<string, unknown>>): ProfileParseOptions {
  const { threads, maxBodyBytes, userAgent, extract } = resolveCrawlOptions(optionsOfFlags(values).crawl)
  const seconds = parseValue('--seconds', { type: 'integer', min: 1, max: SECONDS_MAX }, values['seconds'] ?? secondsDefault) as number
  const cpuProfDir = values['cpuProfDir'] ?? (values['cpuProf'] === true ? '.' : undefined)
  return {
    threads: threads > 0 ? threads : Math.max(1, os.availableParallelism() - 1), maxBodyBytes, seconds, userAgent,
    json: values['json'] === true, compare: values['compare'] !== false,
    ...(extract !== undefined && { extractor: extract }), ...(typeof cpuProfDir === 'string' && { cpuProfDir: madeFolder(cpuProfDir) }),
  }
}

function madeFolder(dir: string): string {
  try {
    // Not recursive: below /proc Node 20 would try for ever.
    if (!fs.existsSync(dir)) fs.mkdirSync(dir)
    fs.accessSync(dir, fs.constants.W_OK)
    return path.resolve(dir)
  } catch (error) {
    throw new SluiceError('usage', `--cpu-prof-dir: expected a folder that can be written, given ${dir}: ${(error as Error).message}`, { cause: error })
  }
}

/** Resolves to the exit code. Throws `usage`, `file_unreadable` and `extractor_unloadable`. */
export async function runProfileParse(paths: readonly string[], options: ProfileParseOptions): Promise<number> {
  const { threads, maxBodyBytes, cpuProfDir } = options
  const inputs = await readInputs(paths, { maxBodyBytes, warn: warner() })
  const profiler = cpuProfDir === undefined ? undefined : await MainProfiler.start()
  const pool = await profilePool(inputs.pages, { ...options, execArgv: cpuProfDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${cpuProfDir}`] })
  refuseFailures(pool)
  const comparison = options.compare ? compare(inputs.pages, options.seconds) : undefined
  const cpuProfiles = profiler === undefined ? undefined : [await profiler.stop(cpuProfDir!), ...workerProfiles(cpuProfDir!)]
  const report = profileReport({ inputs, threads, maxBodyBytes, pool, ...(comparison && { comparison }), ...(cpuProfiles && { cpuProfiles }) })
  await writeOut(options.json ? `${JSON.stringify(report)}\n` : profileText(report))
  return 0
}

function warner(): (message: string) => void {
  let warnings = 0
  return (message) => {
    warnings += 1
    if (warnings <= WARNINGS_MAX) process.stderr.write(`skipped ${safeText(message)}\n`)
    else if (warnings === WARNINGS_MAX + 1) process.stderr.write('skipped more\n')
  }
}

/** Figures of pages that were not read are of no use. */
function refuseFailures({ measured }: PoolProfile): void {
  const failed = Object.values(measured.failures).reduce((sum, pages) => sum + pages, 0)
  if (failed < measured.pages) return
  throw new SluiceError('internal', `no page could be parsed: ${Object.entries(measured.failures).map(([code, pages]) => `${code} ${pages}`).join(', ')}`)
}

function compare(pages: readonly ProfileInput[], seconds: number): ParserComparison & { pages: number; bytes: number } {
  const bodies = sampleOf(pages).map(({ decoded, contentType, isDecodedCut }): ParserBody => ({ bytes: decoded, contentType, isCut: isDecodedCut }))
  const bytes = bodies.reduce((sum, body) => sum + body.bytes.byteLength, 0)
  return { ...compareParsers(bodies, { ms: seconds * 1_000 }), pages: bodies.length, bytes }
}

/** Every page, or every second, third ... of a large set. */
function sampleOf(pages: readonly ProfileInput[]): readonly ProfileInput[] {
  const bytes = pages.reduce((sum, { decoded }) => sum + decoded.byteLength, 0)
  const step = Math.max(1, Math.ceil(bytes / COMPARED_BYTES_MAX))
  return pages.filter((_, index) => index % step === 0)
}

/** The files that Node writes when a worker of this process ends: CPU.<date>.<time>.<process>.<thread>.<number>.cpuprofile */
function workerProfiles(dir: string): readonly string[] {
  const name = new RegExp(String.raw`^CPU\.\d+\.\d+\.${process.pid}\.\d+\.\d+\.cpuprofile$`)
  return fs.readdirSync(dir).filter((file) => name.test(file)).sort().map((file) => path.join(dir, file))
}

/** The main thread's own profile. The flag --cpu-prof would need another process, and cover the reading of the files. */
class MainProfiler {
  readonly #session = new Session()

  static async start(): Promise<MainProfiler> {
    const profiler = new MainProfiler()
    profiler.#session.connect()
    await profiler.#session.post('Profiler.enable')
    await profiler.#session.post('Profiler.start')
    return profiler
  }

  /** Answers the file. */
  async stop(dir: string): Promise<string> {
    const { profile } = await this.#session.post('Profiler.stop')
    this.#session.disconnect()
    const file = path.join(dir, `CPU.main.${process.pid}.cpuprofile`)
    fs.writeFileSync(file, JSON.stringify(profile))
    return file
  }
}
