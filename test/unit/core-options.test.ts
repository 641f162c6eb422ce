import { expect, test } from 'vitest'
import { SluiceError } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import { metavar, parseDuration, parseRecrawl, parseSize, parseValue } from '../../engine/core/option-values.ts'
import { crawlOptions, resolveCrawlOptions, resolveRunLimits, runOptions, storedOptions, type CrawlOptionsGiven, type OptionSpec, type RunLimitsGiven } from '../../engine/core/options.ts'

/** What a caller without types may give. */
const given = (options: Record<string, unknown>): CrawlOptionsGiven => options as CrawlOptionsGiven

function refusal(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).code).toBe('bad_option')
    expect((error as SluiceError).exitCode).toBe(2)
    expect((error as Error).message).not.toContain('\n')
    return (error as Error).message
  }
  return expect.unreachable('the value was taken')
}

test('the defaults are these', () => {
  expect(resolveCrawlOptions({})).toEqual({
    dir: './crawl', scope: 'host', include: [], exclude: [], maxDepth: 65_535,
    maxQueuedPerHost: Infinity, maxQueuedPerDomain: Infinity, maxQueued: Infinity, domainBudget: Infinity, maxStoreBytes: Infinity, durability: 'commit', traps: 'on', maxQueriesPerPath: 10_000,
    userAgent: 'Sluice/0.1 (+https://www.npmjs.com/package/sluice)',
    politeness: 'host', delayMs: 1_000, concurrency: { start: 4, floor: 1, ceiling: 32 }, hostLimits: [], maxPerAddress: Infinity, retries: 2, hostPatienceMs: 300_000, sitemaps: false, obey: ['nofollow', 'noarchive'], excludeHosts: undefined, robots: 'obey', cookies: false, hostHeaders: undefined, timeoutMs: 30_000,
    maxBodyBytes: 256_000, connections: 0, requestsPerSecond: Infinity, bytesPerSecond: Infinity, memoryBytes: 0, threads: 0, format: ['jsonl'], extract: undefined, linkElements: ['a', 'area', 'iframe', 'frame', 'link', 'meta'], simhash: false, nearDuplicates: 'count', priority: undefined, shedAfterMs: 30_000, shedLog: undefined, tailMs: 600_000,
    allowAddress: [], resolve: {}, ca: undefined, insecure: false, gateway: undefined, dedupe: [], recrawl: 'never',
    listen: undefined,
  })
  expect(resolveRunLimits({})).toEqual({ maxPages: Infinity, maxTimeMs: Infinity, maxBytes: Infinity })
})

test.each([null, 5, './crawl', true])('%j in the place of the options is refused: it would be read as none given', (options) => {
  expect(refusal(() => resolveCrawlOptions(options as unknown as CrawlOptionsGiven))).toMatch(/^options: expected an object, given /)
})

test('each default of the table is a value that its own option takes, but for those that mean "not given"', () => {
  const isUnset = (name: string, spec: OptionSpec<unknown>): boolean => spec.default === undefined || ['connections', 'memoryBytes', 'threads'].includes(name)
  for (const [name, spec] of Object.entries<OptionSpec<unknown>>({ ...crawlOptions, ...runOptions })) {
    if (!isUnset(name, spec)) expect(parseValue(name, spec, spec.default), name).toEqual(spec.default)
  }
})

test('an unknown name is refused, and the message tells it and the known ones', () => {
  const message = refusal(() => resolveCrawlOptions(given({ delay: 5 })))
  expect(message).toContain('"delay"')
  expect(message).toContain('delayMs')
  refusal(() => resolveCrawlOptions(given({ maxPages: 5 })))
  refusal(() => resolveCrawlOptions(JSON.parse('{"__proto__": {}}') as CrawlOptionsGiven))
  refusal(() => resolveCrawlOptions(given({ toString: 'x' })))
})

test.each<[string, Record<string, unknown>, unknown]>([
  ['a duration', { delayMs: '1.5s' }, 1_500],
  ['a duration in milliseconds', { delayMs: '500ms' }, 500],
  ['zero as a duration', { delayMs: '0' }, 0],
  ['hours', { timeoutMs: '1h' }, 3_600_000],
  ['minutes', { timeoutMs: '2m' }, 120_000],
  ['a number', { delayMs: 250 }, 250],
  ['a size', { maxBodyBytes: '1MB' }, 1_048_576],
  ['a size in small letters', { maxBodyBytes: '250kb' }, 256_000],
  ['a size without unit', { maxBodyBytes: '4096' }, 4_096],
  ['an integer', { maxDepth: '3' }, 3],
  ['a choice', { scope: 'any' }, 'any'],
  ['choices', { format: 'jsonl,warc' }, ['jsonl', 'warc']],
  ['a list of choices', { format: ['warc'] }, ['warc']],
  ['rules of a key', { dedupe: 'tracking,www' }, ['tracking', 'www']],
  ['no rules of a key', { dedupe: [] }, []],
  ['no rules of a key, as the command line says it to a crawl that has some', { dedupe: 'none' }, []],
  ['requests a second', { requestsPerSecond: '0.5/s' }, 0.5],
  ['a number of requests a second', { requestsPerSecond: 50 }, 50],
  ['no bound on requests', { requestsPerSecond: 'none' }, Number.POSITIVE_INFINITY],
  ['bytes a second', { bytesPerSecond: '1MB/s' }, 1_048_576],
  ['bytes a second without the "a second"', { bytesPerSecond: '250KB' }, 256_000],
  ['memory', { memoryBytes: '256MB' }, 256 * 1_048_576],
  ['no bound, as the command line says it to a crawl that has one', { maxQueuedPerHost: 'none' }, Number.POSITIVE_INFINITY],
  ['one pattern', { include: '^https:' }, ['^https:']],
  ['patterns', { exclude: ['a', 'b|c'] }, ['a', 'b|c']],
  ['concurrency', { concurrency: '2:1:8' }, { start: 2, floor: 1, ceiling: 8 }],
  ['concurrency in any order', { concurrency: { ceiling: 8, floor: 1, start: 2 } }, { start: 2, floor: 1, ceiling: 8 }],
  ['address ranges', { allowAddress: ['127.0.0.0/8', '::1', 'fd00::/8'] }, ['127.0.0.0/8', '::1', 'fd00::/8']],
  ['pinned names', { resolve: ['A.test=127.0.0.1', 'b.test.=::1'] }, { 'a.test': '127.0.0.1', 'b.test': '::1' }],
  ['a pinned name', { resolve: 'a.test=127.0.0.1' }, { 'a.test': '127.0.0.1' }],
  ['pinned names as a record, international ones too', { resolve: { 'Bücher.test': '127.0.0.1' } }, { 'xn--bcher-kva.test': '127.0.0.1' }],
  ['truth', { insecure: true }, true],
  ['truth as a text', { insecure: 'true' }, true],
  ['falsehood as a text', { insecure: 'false' }, false],
  ['wait', { tailMs: 'wait' }, Number.POSITIVE_INFINITY],
  ['park', { tailMs: 'park' }, 0],
  ['a tail', { tailMs: '5m' }, 300_000],
  ['a tail as a number', { tailMs: Number.POSITIVE_INFINITY }, Number.POSITIVE_INFINITY],
  ['a text', { userAgent: 'Bot/1 (+https://x.test/)' }, 'Bot/1 (+https://x.test/)'],
  ['undefined, as the default', { delayMs: undefined }, 1_000],
])('%s is read', (_, options, value) => {
  expect(resolveCrawlOptions(given(options))[Object.keys(options)[0] as 'delayMs']).toEqual(value)
})

const circular: Record<string, unknown> = {}
circular['self'] = circular

test.each<[string, string, readonly unknown[]]>([
  ['delayMs', '--delay', ['', '5', '1 s', '-1s', '1d', '1e3ms', '2h', '1000h', -1, Number.NaN, Infinity, null, {}, [], true, 10n, circular, Symbol('x')]],
  ['timeoutMs', '--timeout', [0, 99, '99ms', '0']],
  ['maxBodyBytes', '--max-body', ['1KiB', '1 KB', '-1', 'MB', '1TB', 1_023, 1_024.5, '33MB', '', null]],
  ['maxDepth', '--max-depth', ['', '1.5', '-1', '0x1', '1e3', 1.5, -1, limits.depthMax + 1, '9'.repeat(15), '9'.repeat(30), Number.NaN]],
  ['retries', '--retries', [101, -1, '2 ']],
  ['connections', '--connections', [0, '0', 'none', 100_001, Infinity]],
  ['requestsPerSecond', '--rate', ['0', 0, -1, '5/m', '/s', '1e3', '', Number.NaN, null, {}]],
  ['bytesPerSecond', '--bandwidth', ['0', '1KB/m', '1Mb/s', '1MBps', '/s', 1_023, -1, '', null]],
  ['memoryBytes', '--memory', [0, '63MB', '1TB', '60%', '', null]],
  ['threads', '--threads', ['0', 257, 1.5]],
  ['scope', '--scope', ['Host', '', 'hosts', 1, null, ['host']]],
  ['politeness', '--politeness', ['path', null]],
  ['format', '--format', ['', 'none', 'csv', 'jsonl,', 'jsonl, warc', [], ['csv'], [1], 1, {}]],
  ['dedupe', '--dedupe', ['', 'none,www', 'www,', ['www', 'x'], 1, {}]],
  ['include', '--include', ['', '(', '[a', ['ok', ''], [1], 1, {}, /a/, String.raw`\-`]],
  ['exclude', '--exclude', ['', '*', null]],
  ['concurrency', '--concurrency', ['4', '4:1', '4:1:2', '1:2:4', '4:0:8', '4:1:32:1', 'a:b:c', '4::8', '4:1:10001', 4, null, [4, 1, 32], { start: 4 }, { start: 4, floor: 1, ceiling: 8, x: 1 }, { start: '4', floor: 1, ceiling: 8 }]],
  ['allowAddress', '--allow-address', ['', 'localhost', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'fe80::1%eth0/64', '10.0.0/8', [1], 1]],
  ['resolve', '--resolve', ['', 'a.test', 'a.test=', '=127.0.0.1', 'a.test=b.test', 'a.test=127.0.0.1=1', 'a b=127.0.0.1', 'a.test=[::1]', 5, true, null, ['x'], [1], { 'a.test': 1 }, { 'a.test': 'b' }]],
  ['insecure', '--insecure', ['yes', '', 1, 0, null]],
  ['tailMs', '--tail', ['never', '-1s', -1, null, '']],
  ['userAgent', '--user-agent', ['', 1, null, 'Bot\r\nX-Evil: 1', 'Bot\0', 'Roböter', ' Bot', 'Bot ']],
  ['dir', '--dir', ['', 1, null, []]],
  ['extract', '--extract', ['', 1]],
  ['priority', 'priority', ['depth', 1, null, {}]],
])('%s refuses what it cannot be, naming %s and what was given', (name, flag, values) => {
  for (const value of values) {
    const message = refusal(() => resolveCrawlOptions(given({ [name]: value })))
    expect(message.startsWith(`${flag}: expected `), message).toBe(true)
    expect(message, String(value)).toMatch(/, given .+/)
    if (typeof value === 'string') expect(message).toContain(', given "')
    expect(message.length).toBeLessThan(500)
  }
})

test('the message of a refusal shows what was given, a pattern and a huge text included', () => {
  expect(refusal(() => resolveCrawlOptions(given({ include: /a+/ })))).toContain('given /a+/')
  expect(refusal(() => resolveCrawlOptions(given({ dir: ['x'] })))).toContain("given [ 'x' ]")
  expect(refusal(() => resolveCrawlOptions({ delayMs: 'x'.repeat(10_000) })).length).toBeLessThan(500)
  expect(refusal(() => resolveCrawlOptions({ delayMs: '2h' }))).toContain('from 0 to 1h')
  expect(refusal(() => resolveCrawlOptions(given({ scope: 'x' })))).toContain('(host, domain, any)')
})

test('the limits of a run take values, texts, and infinity for none', () => {
  expect(resolveRunLimits({ maxPages: 5, maxTimeMs: '2s', maxBytes: '1GB' })).toEqual({ maxPages: 5, maxTimeMs: 2_000, maxBytes: 2 ** 30 })
  expect(resolveRunLimits(resolveRunLimits({}))).toEqual(resolveRunLimits({}))
  for (const bad of [{ maxPages: 0 }, { maxPages: 1.5 }, { maxPages: -Infinity }, { maxPages: '1e6' }, { maxTimeMs: 0 }, { maxBytes: 0.5 }, { maxBytes: 1.5 }, { dir: 'x' }]) {
    refusal(() => resolveRunLimits(bad as RunLimitsGiven))
  }
})

test('a stored value wins over the default, and a given one over the stored', () => {
  const stored = { delayMs: 50, scope: 'any' }
  expect(resolveCrawlOptions({}, stored)).toMatchObject({ delayMs: 50, scope: 'any', retries: 2 })
  expect(resolveCrawlOptions({ delayMs: 0, include: undefined }, stored)).toMatchObject({ delayMs: 0, scope: 'any' })
  expect(resolveCrawlOptions({ exclude: [] }, { exclude: ['a'] }).exclude).toEqual([])
})

test('what is not stored is not taken from the store, and what the store holds is checked like what is given', () => {
  expect(resolveCrawlOptions({}, { dir: '/elsewhere', threads: 7, tailMs: 5, unknown: 1 })).toMatchObject({ dir: './crawl', threads: 0, tailMs: 600_000 })
  expect(refusal(() => resolveCrawlOptions({}, { delayMs: 'soon' }))).toContain('--delay')
})

test('stored options survive JSON, whatever was given', () => {
  const options = resolveCrawlOptions({
    scope: 'domain', include: ['^https://a\\.test/'], exclude: '\\.pdf$', maxDepth: 3, userAgent: 'Bot/1', politeness: 'ip', delayMs: 0,
    concurrency: '2:1:8', retries: 0, timeoutMs: '5s', maxBodyBytes: '1MB', format: 'jsonl,warc', allowAddress: ['::1'],
    resolve: { 'a.test': '127.0.0.1' }, insecure: true, tailMs: 'wait', connections: 3, threads: 2, dir: '/tmp/x',
  })
  const kept = JSON.parse(JSON.stringify(storedOptions(options))) as Record<string, unknown>
  const again = resolveCrawlOptions({}, kept)
  expect(storedOptions(again)).toEqual(storedOptions(options))
  expect(Object.keys(kept)).not.toEqual(expect.arrayContaining(['tailMs']))
  expect(again).toMatchObject({ tailMs: 600_000, connections: 0, threads: 0, dir: './crawl', extract: undefined, ca: undefined })
  // Nothing that JSON would turn into null is kept.
  expect(Object.values(kept)).not.toContain(null)
})

test('resolved options are frozen to the bottom, the defaults too', () => {
  const frozen = (value: unknown): boolean => typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
  expect(frozen(resolveCrawlOptions({}))).toBe(true)
  expect(frozen(resolveCrawlOptions({ include: ['a'], concurrency: '4:1:8', resolve: { 'a.test': '::1' }, format: ['warc'] }))).toBe(true)
})

test('durations and sizes are read as the interface says', () => {
  expect(['500ms', '2s', '5m', '1h', '7d', '0', '0.5s'].map(parseDuration)).toEqual([500, 2_000, 300_000, 3_600_000, 604_800_000, 0, 500])
  expect(['1', '1s ', 's', '1w', '1S', '', '.5s', '1.s', '-1s', '+1s', 'Infinity'].map(parseDuration)).toEqual(Array.from({ length: 11 }, () => undefined))
  expect(['250KB', '1MB', '2gb', '7B', '7', '1.5KB'].map(parseSize)).toEqual([256_000, 1_048_576, 2 ** 31, 7, 7, 1_536])
  expect(['1K', 'KB', '-1', '1 KB', ''].map(parseSize)).toEqual(Array.from({ length: 5 }, () => undefined))
})

test('every option that takes a value says which in its help', () => {
  for (const [name, spec] of Object.entries<OptionSpec<unknown>>({ ...crawlOptions, ...runOptions })) {
    expect(metavar(spec) === '', name).toBe(spec.type === 'boolean')
    // A function is for the library alone.
    if (spec.type === 'function') expect(spec.flag, name).toBeUndefined()
    else expect(spec.flag, name).toMatch(/^--[a-z-]+$/)
    expect(spec.help, name).not.toBe('')
  }
})

test('a recrawl policy is read as the interface says, and stays the text that was given', () => {
  expect(['never', 'lastmod', 'fixed:7d', 'adaptive:1h:30d', 'adaptive:1h:1h'].map(parseRecrawl)).toEqual([
    { kind: 'never' }, { kind: 'lastmod' }, { kind: 'fixed', intervalMs: 604_800_000 },
    { kind: 'adaptive', floorMs: 3_600_000, ceilingMs: 2_592_000_000 }, { kind: 'adaptive', floorMs: 3_600_000, ceilingMs: 3_600_000 },
  ])
  const nonsense = ['', 'always', 'never:1h', 'fixed', 'fixed:', 'fixed:0', 'fixed:soon', 'fixed:1h:2h', 'adaptive:1h', 'adaptive:2h:1h', 'adaptive:0:1h', 'adaptive:1h:2h:3h', 'lastmod:1d']
  expect(nonsense.filter((text) => parseRecrawl(text) !== undefined)).toEqual([])
  expect(refusal(() => resolveCrawlOptions({ recrawl: 'adaptive:2h:1h' }))).toMatch(/^--recrawl: expected never, lastmod, fixed:DURATION, adaptive:FLOOR:CEILING .*, given "adaptive:2h:1h"$/)
  expect(resolveCrawlOptions({}, storedOptions(resolveCrawlOptions({ recrawl: 'fixed:1h' }))).recrawl).toBe('fixed:1h')
})

test('a recrawl function is taken and not stored', () => {
  const recrawl = (): undefined => undefined
  const options = resolveCrawlOptions({ recrawl })
  expect(options.recrawl).toBe(recrawl)
  expect(storedOptions(options)).not.toHaveProperty('recrawl')
})
