/**
 * The command line: commands, flags and help. The only file that imports commander. It wires: each command is a module
 * of its own, loaded when it is asked for, so that `sluice --version` does not load a database.
 */
import fs from 'node:fs'
import { Command, CommanderError, Option, type OptionValues } from 'commander'
import { errorCodes, SluiceError } from '../core/errors.ts'
import { parseValue } from '../core/option-values.ts'
import { crawlOptions } from '../core/options.ts'
import { stateOfOutcome } from '../core/types.ts'
import type { ExportKind } from './export/export.ts'
import type { ExportFormat } from './export/formats.ts'
import { crawlFlags, optionsOfFlags, type Flag } from './flags.ts'
import { reportError } from './lines.ts'
import type { ProgressMode } from './reporter.ts'
import { runWeb, webFlags, webOptions } from './web.ts'

/** Runs one command line, without the program's own name; resolves to the exit code. */
export async function runProgram(args: readonly string[]): Promise<number> {
  // Who writes and must know is told by its callback; a crawl goes on without a reader that has left (`| head`).
  process.stdout.on('error', () => undefined)
  let exitCode = 0
  const program = makeProgram((code) => { exitCode = code })
  try {
    if (args.length === 0) program.outputHelp()
    else await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, args.includes('--verbose'))
    if (error.exitCode === 0) return 0
    // A group of commands without one of them: commander has shown its help.
    return error.code === 'commander.help' ? errorCodes.usage : reportError(usageError(error), false)
  }
}

/** commander's message as ours: one line, with the nearest name where there is one. */
function usageError({ code, message }: CommanderError): SluiceError {
  const text = message.replace(/^error: /, '').replaceAll(/\n\(Did you mean ([^)]*)\?\)/g, ' (did you mean $1?)')
  return new SluiceError(code === 'commander.unknownOption' || code === 'commander.optionMissingArgument' ? 'bad_option' : 'usage', text)
}

function makeProgram(exit: (code: number) => void): Command {
  const program = new Command('sluice')
    .description('A crawl engine: bounded, polite, and losing nothing.')
    .usage('COMMAND')
    .version(version(), '--version', 'the version')
    .helpOption('--help', 'this help')
    .helpCommand('help [COMMAND]', 'the help of a command')
    .addHelpText('after', '\nA first crawl: sluice crawl https://example.com/ --max-pages 100\nThe flags of a command: sluice COMMAND --help')
    .configureHelp({ minWidthToWrap: 30 })
    .configureOutput({ outputError: () => undefined })
    .exitOverride()
  const run = (action: (options: OptionValues, args: string[]) => Promise<number>) => async (...given: unknown[]): Promise<void> => {
    const command = given.at(-1) as Command
    exit(await action(command.opts(), command.args))
  }
  addCrawl(program, run)
  addState(program, run)
  addRequeue(program, run)
  addUpkeep(program, run)
  addInspect(program, run)
  addProfile(program, run)
  addWeb(program, run)
  return program
}

const crawlNotes = `
Durations: 500ms, 2s, 5m, 1h, 7d. Sizes: 250KB, 1MB (1 KB = 1,024 bytes).
Ctrl-C stores what was received and ends; the same command goes on.
Exit codes: 0 complete or at a limit, 1 failed, 2 wrong usage, 3 stopped by a
signal, 4 the store could not be opened.`

type Run = (action: (options: OptionValues, args: string[]) => Promise<number>) => (...given: unknown[]) => Promise<void>

function addCrawl(program: Command, run: Run): void {
  const crawl = program.command('crawl').argument('[URL...]', 'seeds').usage('[URL...] [OPTIONS]')
    .summary('start a crawl, or go on with what --dir holds')
    .description('Starts a crawl, or goes on with what --dir holds. The options are kept with the crawl; those given win.')
    .addHelpText('after', crawlNotes)
  for (const flag of crawlFlags) crawl.addOption(optionOf(flag))
  crawl.action(run(async (options, urls) => {
    const { progressModes } = await import('./reporter.ts')
    const { runCrawl } = await import('./crawl.ts')
    const progress = choice('--progress', progressModes, options['progress'] ?? 'auto') as ProgressMode
    const seedsFile = options['seeds'] as string | undefined
    return runCrawl({ urls, ...(seedsFile !== undefined && { seedsFile }), ...optionsOfFlags(options), progress, verbose: options['verbose'] === true })
  }))
}

function optionOf({ flags, help, group, isRepeatable }: Flag): Option {
  const option = new Option(flags, help).helpGroup(group)
  return isRepeatable ? option.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]) : option
}

function choice(name: string, choices: readonly string[], given: unknown): string {
  return parseValue(name, { type: 'choice', choices }, given) as string
}

function addDir(command: Command): Command {
  return command.option('--dir <DIR>', 'crawl directory', crawlOptions.dir.default)
}

function addState(program: Command, run: Run): void {
  addDir(program.command('status')).usage('[OPTIONS]').description('the state of a crawl, running or stopped')
    .option('--json', 'as one JSON object').option('--host <NAME>', 'of one of its hosts')
    .action(run(async ({ dir, json, host }) => (await import('./status.ts')).runStatus({ dir, json: json === true, ...(host !== undefined && { host }) })))
  addDir(program.command('export').argument('[WHAT]', 'pages: their records, every fetch of them; queue; hosts; failures: URLs whose last outcome is failed', 'pages'))
    .usage('[WHAT] [OPTIONS]').description('what a crawl holds as one file, running or stopped')
    .option('--format <jsonl|csv|parquet>', 'one JSON object a line, RFC 4180 with a header, or Parquet', 'jsonl')
    .option('--output <FILE>', 'where to; there when it is whole (default: standard output)')
    .action(run(async ({ dir, format, output }, [what = 'pages']) => {
      const [{ exportKinds, runExport }, { exportFormats }] = [await import('./export/export.ts'), await import('./export/formats.ts')]
      return runExport({
        what: choice('WHAT', exportKinds, what) as ExportKind, dir, format: choice('--format', exportFormats, format) as ExportFormat, ...(output !== undefined && { output }),
      })
    }))
  addDir(program.command('exclude').argument('<HOST...>')).usage('HOST... [OPTIONS]').description('stop a host, now and later')
    .action(run(async ({ dir }, hosts) => (await import('./exclude.ts')).runExclude(hosts, dir)))
}

/** Several values of a flag, given with commas or by repeating it. */
const several = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]

function addRequeue(program: Command, run: Run): void {
  addDir(program.command('requeue')).usage('[OPTIONS]').summary('try ended URLs again')
    .description('Puts URLs that have ended back into the queue: those that match every filter given. Works on a running crawl too.')
    .option('--outcome <OUTCOME>', `what became of them, several with commas: ${Object.keys(stateOfOutcome).join(', ')}`, several)
    .option('--code <CODE>', 'their failure code, such as timeout or http_503', several)
    .option('--host <NAME>', 'their host').option('--all', 'all of them').option('--json', 'as one JSON object')
    .action(run(async ({ dir, json, ...filter }) => (await import('./requeue.ts')).runRequeue({ dir, json: json === true, filter })))
}

function addUpkeep(program: Command, run: Run): void {
  addDir(program.command('check')).usage('[OPTIONS]').summary('look for damage in the directory of a stopped crawl')
    .description('Reads every row of the store, every page record and the head of every WARC record that one names, while no crawl runs there. Counts that do not agree are mended; the rest is told. Exit code 1: problems remain.')
    .option('--json', 'as one JSON object')
    .action(run(async ({ dir, json }) => (await import('./check.ts')).runCheck({ dir, json: json === true })))
  addDir(program.command('compact')).usage('[OPTIONS]').summary('give back disk space that the store of a stopped crawl does not use')
    .description('Writes the store anew without what was freed inside its file, and puts it in the place of the old one when it is complete. Needs room for both.')
    .option('--json', 'as one JSON object')
    .action(run(async ({ dir, json }) => (await import('./compact.ts')).runCompact({ dir, json: json === true })))
}

/** What a fetch of one document can be told. */
const networkFlags = ['--allow-address', '--resolve', '--ca', '--insecure', '--timeout', '--user-agent']

function addInspect(program: Command, run: Run): void {
  const inspect = program.command('inspect').usage('COMMAND').description('what the engine reads in a document, a robots.txt, a sitemap or a URL')
  const page = inspect.command('page').argument('[FILE|URL]', 'a document; -: standard input').usage('FILE|URL [OPTIONS]')
    .description('what the engine reads in a document')
    .option('--base <URL>', 'address of the document (default for files: https://base.invalid/)').option('--content-type <TEXT>', 'its Content-Type header')
    .option('--json', 'as one JSON object').option('--batch', 'read {file | html | base64, base, contentType} a line on standard input, answer each in a line')
  addNetwork(page, [...networkFlags, '--max-body'])
  page.action(run(async (options, [source]) => (await import('./inspect.ts')).runInspectPage(source, inspectOptions(options))))
  const robots = inspect.command('robots').argument('[FILE|URL]', 'a robots.txt; -: standard input; a URL: that of its origin').usage('FILE|URL [OPTIONS]')
    .description('whether a robots.txt allows a URL, and by which line')
    .option('--agent <NAME>', 'who asks: a product token, or a whole user agent (default: that of a crawl)').option('--url <URL>', 'what for (default for a URL: that one)')
    .option('--json', 'as one JSON object').option('--batch', 'read {robots | base64 | file, agent, url} a line on standard input, answer each in a line')
  addNetwork(robots, networkFlags)
  robots.action(run(async (options, [source]) => (await import('./inspect.ts')).runInspectRobots(source, inspectOptions(options))))
  const sitemap = inspect.command('sitemap').argument('[FILE|URL]', 'a sitemap, an index of them or a feed, packed or not; -: standard input').usage('FILE|URL [OPTIONS]')
    .description('the entries of a sitemap or a feed, and what is wrong with it')
    .option('--base <URL>', 'address of the sitemap (default for files: https://base.invalid/)').option('--content-type <TEXT>', 'its Content-Type header')
    .option('--json', 'as one JSON object').option('--batch', 'read {file | base64, base, contentType} a line on standard input, answer each in a line')
  addNetwork(sitemap, networkFlags)
  sitemap.action(run(async (options, [source]) => (await import('./inspect.ts')).runInspectSitemap(source, inspectOptions(options))))
  inspect.command('url').argument('[URL]').usage('URL [OPTIONS]').description('resolved URL, canonical key, host and registrable domain')
    .option('--base <URL>', 'what a relative URL is relative to').option('--dedupe <RULES>', 'make the key by these rules, as crawl does').option('--json', 'as one JSON object')
    .option('--batch', 'read {url, base, dedupe} a line on standard input, answer each in a line')
    .action(run(async (options, [url]) => (await import('./inspect.ts')).runInspectUrl(url, inspectOptions(options))))
}

function addNetwork(command: Command, names: readonly string[]): void {
  for (const flag of crawlFlags) if (names.some((name) => flag.flags.split(' ')[0] === name)) command.addOption(optionOf(flag).helpGroup('For a URL:'))
}

function inspectOptions({ base, contentType, dedupe, agent, url, json, batch, ...network }: OptionValues): import('./inspect.ts').InspectOptions {
  return {
    json: json === true, batch: batch === true, network: optionsOfFlags(network).crawl,
    ...(base !== undefined && { base }), ...(contentType !== undefined && { contentType }), ...(dedupe !== undefined && { dedupe }),
    ...(agent !== undefined && { agent }), ...(url !== undefined && { url }),
  }
}

/** What a run of the parse workers can be told. */
const parseFlags = ['--threads', '--max-body', '--extract']

function addProfile(program: Command, run: Run): void {
  const profile = program.command('profile').usage('COMMAND').description('how fast this machine is at the work of a crawl')
  const parse = profile.command('parse').argument('[PATH...]', 'HTML files, folders of them, .html.gz, .html.br, WARC; none: made pages').usage('[PATH...] [OPTIONS]')
    .summary('how fast pages are read').description('How fast pages are read by the parse workers, what the time goes into, and what other parsers need.')
    .option('--json', 'as one JSON object').option('--seconds <N>', 'measure for so long at least, and all pages once (default: 3)')
    .option('--no-compare', 'leave out the other parsers')
    .option('--cpu-prof', 'write CPU profiles (.cpuprofile) of the main thread and of each worker').option('--cpu-prof-dir <DIR>', 'where to (default: here)')
  for (const flag of crawlFlags) if (parseFlags.some((name) => flag.flags.split(' ')[0] === name)) parse.addOption(new Option(flag.flags, flag.help))
  parse.action(run(async (options, paths) => {
    const { profileParseOptions, runProfileParse } = await import('./profile-parse.ts')
    return runProfileParse(paths, profileParseOptions(options))
  }))
}

function addWeb(program: Command, run: Run): void {
  const web = program.command('web').usage('[OPTIONS]').description('the demonstration web alone, until a signal')
  for (const flag of webFlags) web.option(flag.flags, flag.description, flag.default as string | boolean | undefined)
  web.action(run((options) => runWeb(webOptions(options))))
}

function version(): string {
  const toRoot = import.meta.url.endsWith('.ts') ? '../../' : '../../../'
  const text = fs.readFileSync(new URL(`${toRoot}package.json`, import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
