import { expect, test } from 'vitest'
import { errorCodes, failureOfStatus, failureRule, failureTable, invariant, SluiceError, type FailureCode, type FailureRule } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import { stateOfOutcome } from '../../engine/core/types.ts'

const rules = Object.entries(failureTable) as [FailureCode, FailureRule][]

test('a failure that is charged to the host says when the host is given up, and only such a failure does', () => {
  for (const [code, rule] of rules) {
    if (rule.retry === 'host' || rule.retry === 'both') expect(rule.hostTriesMax, code).toBeGreaterThanOrEqual(2)
    else expect(rule.hostTriesMax, code).toBeUndefined()
    expect(failureRule(code)).toBe(failureTable[code])
  }
})

test('what cannot pass is never tried again: addresses, names of certificates, types, what a worker died of', () => {
  const never = rules.filter(([, rule]) => rule.retry === 'never').map(([code]) => code)
  expect(never).toEqual(expect.arrayContaining(['address_refused', 'tls_name_mismatch', 'tls_untrusted', 'unsupported_type', 'redirect_limit', 'robots_disallowed', 'parse_timeout', 'parse_crashed', 'extractor_failed']))
  for (const [code, rule] of rules) if (rule.retry === 'never') expect(rule.limiter, code).toBe('none')
})

test('look-up, connection and TLS are charged to the host alone, 429, 503, challenges and blocks to the host and to a URL that a well host refuses', () => {
  const codesOf = (retry: FailureRule['retry']): string[] => rules.filter(([, rule]) => rule.retry === retry).map(([code]) => code).sort()
  expect(codesOf('host')).toEqual(['connect_failed', 'connect_refused', 'connect_timeout', 'dns_failed', 'dns_not_found', 'robots_unreachable', 'tls_failed'])
  expect(codesOf('both')).toEqual(['blocked', 'challenged', 'http_429', 'http_503'])
  expect(codesOf('gateway')).toEqual(['gateway_failed', 'gateway_quota', 'gateway_throttled'])
  expect(codesOf('park')).toEqual(['http_402'])
})

test('what says that a host has too much to do slows it down', () => {
  const codesOf = (limiter: FailureRule['limiter']): string[] => rules.filter(([, rule]) => rule.limiter === limiter).map(([code]) => code)
  expect(codesOf('throttle')).toEqual(expect.arrayContaining(['http_429', 'challenged', 'blocked']))
  expect(codesOf('strain')).toEqual(expect.arrayContaining(['http_408', 'http_502', 'http_503', 'http_504', 'timeout', 'connect_timeout', 'connection_closed']))
})

test('every meaning is a line for people', () => {
  for (const [code, rule] of rules) expect(rule.meaning, code).toMatch(/^[A-Za-z][^\n]{5,}[^.]$/)
})

test('of all statuses only those of the table are not final, and 402 among them parks its host', () => {
  const again = Array.from({ length: 1_000 }, (_, status) => status).filter((status) => failureOfStatus(status) !== undefined)
  expect(again).toEqual([402, 408, 425, 429, 500, 502, 503, 504])
  expect(failureOfStatus(503)).toBe('http_503')
})

test('a broken invariant is thrown with its sentence and the code internal', () => {
  expect(() => invariant(true, 'x')).not.toThrow()
  expect(() => invariant(false, 'one and one is two')).toThrow(expect.objectContaining({ name: 'SluiceError', code: 'internal', message: 'broken invariant: one and one is two' }))
})

test('an error keeps its cause, and its exit code is that of the interface', () => {
  const cause = new Error('EACCES')
  const error = new SluiceError('dir_unusable', 'cannot write', { cause })
  expect([error.cause, error.exitCode, String(error)]).toEqual([cause, 4, 'SluiceError: cannot write'])
  const codesOf = (exit: number): string[] => Object.entries(errorCodes).filter(([, code]) => code === exit).map(([name]) => name).sort()
  expect(codesOf(4)).toEqual(['dir_unusable', 'no_crawl', 'store_corrupt', 'store_in_use', 'store_version'])
  expect(new Set(Object.values(errorCodes))).toEqual(new Set([1, 2, 4]))
})

test('every outcome ends in a state, and a usable answer is what done means', () => {
  expect(new Set(Object.values(stateOfOutcome))).toEqual(new Set(['done', 'failed', 'excluded', 'dropped']))
  expect(Object.entries(stateOfOutcome).filter(([, state]) => state === 'done').map(([outcome]) => outcome)).toEqual(['ok', 'redirect', 'not_modified', 'http_error'])
})

test('every limit is a number above zero whose name ends in its unit', () => {
  for (const [name, value] of Object.entries(limits)) {
    expect(value, name).toBeGreaterThan(0)
    expect(Number.isFinite(value), name).toBe(true)
    expect(name).toMatch(/(Max|Min|Ms|Mb|Bytes|PerHost)$/)
  }
})
