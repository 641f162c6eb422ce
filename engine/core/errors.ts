/**
 * What can go wrong, in two tables. Errors are thrown for bad options, broken invariants and a store that cannot be
 * used, always as a SluiceError with a stable code; a failure of the network or of a page is a value, never thrown,
 * and the failure table says what follows from it. Leaf module.
 */

/** Codes of thrown errors, with the exit code that the command line gives. */
export const errorCodes = {
  usage: 2,
  bad_option: 2,
  bad_url: 2,
  seeds_unreadable: 2,
  file_unreadable: 2,
  extractor_unloadable: 2,
  dir_unusable: 4,
  store_in_use: 4,
  store_version: 4,
  store_corrupt: 4,
  no_crawl: 4,
  port_in_use: 1,
  disk_failed: 1,
  disk_full: 1,
  crawler_closed: 1,
  already_running: 1,
  consumer_failed: 1,
  engine_died: 1,
  internal: 1,
} as const

export type ErrorCode = keyof typeof errorCodes

/** The one class that Sluice throws. Match on `code`; the message is for people and is one line. */
export class SluiceError extends Error {
  override readonly name = 'SluiceError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  /** Exit code of the command line for this error. */
  get exitCode(): number {
    return errorCodes[this.code]
  }
}

/** The error as Sluice throws it: `store_corrupt` for what LMDB says when it reads a damaged file, `internal` for the unforeseen. */
export function sluiceErrorOf(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const text = error instanceof Error ? error.message : String(error)
  if (/^MDB_(?:CORRUPTED|PAGE_NOTFOUND|BAD_TXN|INVALID|CURSOR_FULL|PANIC)\b/.test(text)) {
    return new SluiceError('store_corrupt', `the store is damaged: ${text}`, { cause: error })
  }
  return new SluiceError('internal', String(error), { cause: error })
}

/** Reads a store that may be damaged: what LMDB throws becomes `store_corrupt`. */
export function orDamage<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw sluiceErrorOf(error)
  }
}

/** A broken invariant is a programmer's error: it is thrown at once and never handled. */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) throw new SluiceError('internal', `broken invariant: ${what}`)
}

/** What a failure leads to. */
export interface FailureRule {
  /**
   * `url`: the URL is tried again within its own budget. `host`: the host rests and is probed, the URL keeps its
   * attempts, and fails with this code when the host is given up. `both`: as `host`; and the URL that a well host
   * refused is charged too, so that one bad URL neither comes back for ever nor has its host given up. `park`: the host
   * is parked, its URLs stay queued and are not tried until somebody asks. `gateway`: the gateway is to blame, and neither
   * the URL nor its host is charged. `never`: trying again cannot help.
   */
  readonly retry: 'url' | 'host' | 'both' | 'park' | 'gateway' | 'never'
  /**
   * `throttle`: the limiter of the host (of the gateway) decreases, once per congestion event. `strain`: it does so when there
   * are several of these within a few answers, since one may be the page's own fault. With a Retry-After a strain is a throttle.
   */
  readonly limiter: 'throttle' | 'strain' | 'none'
  /** The network here may be what failed, and not the host. */
  readonly network?: true
  /** How often the host is tried in a row before it is given up; only for `host` and `both`. */
  readonly hostTriesMax?: number
  /** The answer is sure to stay: the host is given up after its tries, however soon. The others are tried for `hostPatienceMs` at least. */
  readonly isCertain?: true
  readonly meaning: string
}

/**
 * Every failure code of a URL. What a failure leads to is read from here when the scheduler releases a URL (its rules for
 * hosts are in host-failures.ts), and whether a later fetch may have another answer by the recrawl policy. Sources: RFC 9110 section 15 for statuses,
 * RFC 6585 for 429, RFC 9309 section 2.3.1 for robots.txt.
 */
export const failureTable = {
  dns_not_found: { retry: 'host', limiter: 'none', hostTriesMax: 2, isCertain: true, network: true, meaning: 'the host name does not exist' },
  dns_failed: { retry: 'host', limiter: 'none', hostTriesMax: 4, network: true, meaning: 'the host name could not be looked up' },
  address_refused: { retry: 'never', limiter: 'none', meaning: 'the address is private, local or otherwise refused (see --allow-address)' },
  connect_refused: { retry: 'host', limiter: 'none', hostTriesMax: 4, meaning: 'nothing listens at the address' },
  connect_failed: { retry: 'host', limiter: 'none', hostTriesMax: 4, network: true, meaning: 'no connection could be made' },
  connect_timeout: { retry: 'host', limiter: 'strain', hostTriesMax: 4, network: true, meaning: 'no connection in time' },
  tls_name_mismatch: { retry: 'never', limiter: 'none', meaning: 'the certificate is for another name' },
  tls_untrusted: { retry: 'never', limiter: 'none', meaning: 'the certificate is not trusted (expired, self-signed or unknown authority)' },
  tls_failed: { retry: 'host', limiter: 'none', hostTriesMax: 4, meaning: 'the TLS handshake failed' },
  connection_closed: { retry: 'url', limiter: 'strain', network: true, meaning: 'the server closed or reset the connection before the answer was complete' },
  timeout: { retry: 'url', limiter: 'strain', network: true, meaning: 'the answer was not complete at the deadline' },
  bad_http: { retry: 'never', limiter: 'none', meaning: 'the answer is not HTTP' },
  headers_too_large: { retry: 'never', limiter: 'none', meaning: 'the response headers are larger than the limit' },
  http_402: { retry: 'park', limiter: 'none', meaning: 'status 402, the site asks to be paid for each page: its host is parked' },
  http_408: { retry: 'url', limiter: 'strain', meaning: 'status 408, the server waited too long for the request' },
  http_425: { retry: 'url', limiter: 'none', meaning: 'status 425, too early' },
  http_429: { retry: 'both', limiter: 'throttle', hostTriesMax: 8, meaning: 'status 429, too many requests' },
  http_500: { retry: 'url', limiter: 'none', meaning: 'status 500, an error of the server' },
  http_502: { retry: 'url', limiter: 'strain', meaning: 'status 502, a gateway got no good answer' },
  http_503: { retry: 'both', limiter: 'strain', hostTriesMax: 8, meaning: 'status 503, the service is not available' },
  http_504: { retry: 'url', limiter: 'strain', meaning: 'status 504, a gateway got no answer in time' },
  challenged: { retry: 'both', limiter: 'throttle', hostTriesMax: 6, meaning: 'a page that asks whoever comes to prove that it is no robot, in place of the page' },
  blocked: { retry: 'both', limiter: 'throttle', hostTriesMax: 3, meaning: 'a page of a firewall that says that we are blocked, in place of the page' },
  gateway_throttled: { retry: 'gateway', limiter: 'throttle', meaning: 'status 429 of a gateway: too many requests at once through it' },
  gateway_quota: { retry: 'gateway', limiter: 'none', meaning: 'the quota or the credits of a gateway are spent' },
  gateway_failed: { retry: 'gateway', limiter: 'throttle', meaning: 'the gateway could not be reached, or did not do its work' },
  gateway_refused: { retry: 'never', limiter: 'none', meaning: 'the gateway will not fetch this URL, or does not accept our credentials' },
  unsupported_type: { retry: 'never', limiter: 'none', meaning: 'the content type is not text (its body was not read)' },
  bad_content_encoding: { retry: 'never', limiter: 'none', meaning: 'the body does not match its Content-Encoding' },
  bad_sitemap: { retry: 'never', limiter: 'none', meaning: 'what came is no sitemap, or none that can be read' },
  redirect_limit: { retry: 'never', limiter: 'none', meaning: 'the chain of redirects is longer than the limit' },
  robots_disallowed: { retry: 'never', limiter: 'none', meaning: 'robots.txt does not allow the URL' },
  robots_unreachable: { retry: 'host', limiter: 'none', hostTriesMax: 4, meaning: 'robots.txt cannot be had or cannot be read, which forbids everything' },
  parse_timeout: { retry: 'never', limiter: 'none', meaning: 'the page was not parsed at its deadline, in two workers' },
  parse_out_of_memory: { retry: 'never', limiter: 'none', meaning: 'two workers reached their memory limit on the page' },
  parse_crashed: { retry: 'never', limiter: 'none', meaning: 'two workers died on the page' },
  page_killed: { retry: 'never', limiter: 'none', meaning: 'the process died twice while it read this page alone' },
  parse_failed: { retry: 'never', limiter: 'none', meaning: 'the page could not be parsed' },
  extractor_failed: { retry: 'never', limiter: 'none', meaning: 'the extractor threw, or returned what JSON cannot hold' },
} as const satisfies Record<string, FailureRule>

export type FailureCode = keyof typeof failureTable

/** The rule of a code. */
export function failureRule(code: FailureCode): FailureRule {
  return failureTable[code]
}

/** A page in the place of the page: of a service against robots, or of a firewall. */
export type WallCode = 'challenged' | 'blocked'

export function isWall(code: string | undefined): code is WallCode {
  return code === 'challenged' || code === 'blocked'
}

/** The code of a response status that is worth another try, or undefined when the answer is final. */
export function failureOfStatus(status: number): FailureCode | undefined {
  const code = `http_${status}`
  return code in failureTable ? (code as FailureCode) : undefined
}
