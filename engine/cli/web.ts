/**
 * `sluice web`: runs the demonstration web in this process until a signal, and says how to crawl it.
 */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { SluiceError } from '../core/errors.ts'
import { numberOptions, startDemoWeb, type DemoWeb, type DemoWebOptions } from '../demo/index.ts'

export type WebCommandOptions = DemoWebOptions & {
  /** Folder for ca.pem, hosts and seeds.txt; a fresh temporary one by default. */
  readonly outDir?: string
}

export interface WebFlag {
  readonly flags: string
  readonly description: string
  readonly default?: number | boolean
}

/** The flags of the command, as commander takes them; `webOptions` reads what commander then gives. */
export const webFlags: readonly WebFlag[] = [
  ...numberOptions.map((option) => ({
    flags: `${option.flag} <n>`,
    // With --pages this default is another, so it is said here and not set.
    ...(option.name === 'pagesPerHost'
      ? { description: `${option.meaning} (default: ${option.default})` }
      : { description: option.meaning, default: option.default }),
  })),
  { flags: '--tls', description: 'serve HTTPS, by a certificate authority made for this run', default: false },
  { flags: '--pages <dir>', description: 'serve the .html, .html.gz and .html.br files of a folder in place of made pages; one page a file unless --pages-per-host is given' },
  { flags: '--log <file>', description: 'append one JSON line for each request' },
  { flags: '--out <dir>', description: 'where ca.pem, hosts and seeds.txt go (default: a fresh temporary folder)' },
]

/** Options from the values of the flags by their camel-case names, texts or not; those left at default may be absent. */
export function webOptions(values: Readonly<Record<string, unknown>>): WebCommandOptions {
  const options: Record<string, unknown> = {}
  for (const option of numberOptions) {
    const given = values[option.name]
    if (given === undefined) continue
    options[option.name] = typeof given === 'string' ? numberOf(option.flag, given) : given
  }
  if (values['tls'] !== undefined) options['tls'] = values['tls']
  for (const [flag, name] of [['pages', 'pagesDir'], ['log', 'logFile'], ['out', 'outDir']] as const) {
    if (values[flag] !== undefined) options[name] = values[flag]
  }
  return options
}

function numberOf(flag: string, text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new SluiceError('usage', `${flag}: expected a number, given ${JSON.stringify(text)}`)
  return value
}

/** Serves until SIGINT or SIGTERM; resolves to the exit code. Throws what `startDemoWeb` throws. */
export async function runWeb(options: WebCommandOptions = {}): Promise<number> {
  const { outDir, ...webOnly } = options
  const web = await startDemoWeb(webOnly)
  try {
    const dir = path.resolve(outDir ?? fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-web-')))
    writeFiles(web, dir)
    process.stdout.write(`${web.pages} pages on ${web.resolve.size} hosts, port ${web.port}. To crawl them:\n\n  ${crawlCommand(web, dir)}\n\nCtrl-C ends it.\n`)
    await signalled()
    process.stdout.write(`${web.requests.total} requests served\n`)
    return 0
  } finally {
    await web.close()
  }
}

function writeFiles(web: DemoWeb, dir: string): void {
  try {
    fs.mkdirSync(dir, { recursive: true })
    if (web.caPem !== '') fs.writeFileSync(path.join(dir, 'ca.pem'), web.caPem)
    fs.writeFileSync(path.join(dir, 'hosts'), [...web.resolve].map(([name, address]) => `${address} ${name}\n`).join(''))
    fs.writeFileSync(path.join(dir, 'seeds.txt'), web.seeds.map((url) => `${url}\n`).join(''))
  } catch (error) {
    throw new SluiceError('usage', `--out: expected a folder that can be written, given ${dir}: ${(error as Error).message}`, { cause: error })
  }
}

function crawlCommand(web: DemoWeb, dir: string): string {
  const file = (name: string): string => {
    const full = path.join(dir, name)
    return /[^\w@%+=:,./-]/.test(full) ? `'${full.replaceAll("'", String.raw`'\''`)}'` : full
  }
  const ca = web.caPem === '' ? '' : ` --ca ${file('ca.pem')}`
  return `sluice crawl --seeds ${file('seeds.txt')} --resolve @${file('hosts')}${ca} --allow-address 127.0.0.0/8 --delay 0 --scope any`
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      process.off('SIGINT', end)
      process.off('SIGTERM', end)
      resolve()
    }
    process.on('SIGINT', end)
    process.on('SIGTERM', end)
  })
}
