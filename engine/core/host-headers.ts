/**
 * Header fields and passwords that are sent to one origin each, as the operator wrote them, checked. By origin and not by
 * host name: what is meant for `https://a.test` is no business of `http://a.test`, where anybody on the way reads it, nor
 * of another server on another port. There are no patterns. No refusal repeats a value. Leaf module, pure.
 */
import { limits } from './limits.ts'
import { basicCredentials, checkFields, framingFields, isRecord, parseHeaders, refusalsOf, type Refuse, type SecretField } from './secret-config.ts'

/** What one origin is sent, as it stands in the file. */
export interface OriginHeadersGiven {
  /** Scheme, host and port if it is not the scheme's own: `https://intranet.example.com`. */
  readonly origin: string
  /** Field names and values, printable ASCII. Those that Sluice sends too (Accept) take their place. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as Basic authentication (RFC 7617), in UTF-8. */
  readonly basic?: { readonly username: string; readonly password: string }
}

/** Content of the file of `--host-headers`. */
export interface HostHeadersFile {
  readonly origins: readonly OriginHeadersGiven[]
}

/** A checked list; what an option that was given as an object resolves to. Its JSON holds no secret, and is not read back. */
export class HostHeaders {
  readonly #byOrigin: ReadonlyMap<string, readonly SecretField[]>

  constructor(byOrigin: ReadonlyMap<string, readonly SecretField[]> = new Map()) {
    this.#byOrigin = byOrigin
    Object.freeze(this)
  }

  /** What is sent to an origin, which is as `URL` gives it. */
  of(origin: string): readonly SecretField[] {
    return this.#byOrigin.get(origin) ?? []
  }
}

const refuse: Refuse = refusalsOf('--host-headers')

/**
 * Fields that are the engine's own: besides those that frame a message its name, by which robots.txt judges it; the codings
 * that it can decode; what makes the answer another than the page (RFC 9110 sections 13.1 and 14.2); and what is said to proxies alone.
 */
const ownFields = [...framingFields, 'user-agent', 'accept-encoding', 'range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range', 'proxy-authorization']

/** Reads the content of a file of headers, or what the library was given in its place. Throws `bad_option`. */
export function parseHostHeaders(given: unknown): HostHeaders {
  if (given instanceof HostHeaders) return given
  if (!isRecord(given)) refuse('the file', 'an object with a list "origins"')
  checkFields(refuse, 'the file', given, ['origins'])
  const { origins } = given
  if (!Array.isArray(origins) || origins.length === 0 || origins.length > limits.hostHeadersOriginsMax) refuse('origins', `a list of 1 to ${limits.hostHeadersOriginsMax} origins`)
  const byOrigin = new Map<string, readonly SecretField[]>()
  for (const [at, one] of origins.entries()) {
    const [origin, fields] = parseOne(`origins[${at}]`, one)
    if (byOrigin.has(origin)) refuse(`origins[${at}].origin`, `each origin once, given ${origin} twice`)
    byOrigin.set(origin, fields)
  }
  return new HostHeaders(byOrigin)
}

function parseOne(place: string, given: unknown): readonly [string, readonly SecretField[]] {
  if (!isRecord(given)) refuse(place, 'an object')
  checkFields(refuse, place, given, ['origin', 'headers', 'basic'])
  const origin = parseOrigin(`${place}.origin`, given['origin'])
  const headers = parseHeaders(refuse, `${place}.headers`, given['headers'] ?? {}, ownFields)
  const basic = given['basic'] === undefined ? [] : [['authorization', parseBasic(`${place}.basic`, given['basic'])] as const]
  const fields = [...headers, ...basic]
  if (fields.length === 0) refuse(place, '"headers", "basic" or both')
  if (new Set(fields.map(([name]) => name)).size < fields.length) refuse(place, 'each header once, whether it is written in capitals or not, and no authorization beside "basic"')
  const bytes = fields.reduce((sum, [name, value]) => sum + name.length + value.reveal().length + ': \r\n'.length, 0)
  if (bytes > limits.hostHeadersBytesMax) refuse(place, `headers of at most ${limits.hostHeadersBytesMax} bytes together`)
  return [origin, Object.freeze(fields)]
}

function parseOrigin(place: string, given: unknown): string {
  const url = typeof given === 'string' && /^https?:\/\//i.test(given) && URL.canParse(given) ? new URL(given) : undefined
  // A user and a password may have been meant for "basic".
  const isBare = url !== undefined && url.href === `${url.origin}/` && !/[*%]/.test(url.hostname)
  return isBare ? url.origin : refuse(place, 'https://HOST, http://HOST or either with :PORT, with no user, path or pattern; it is not shown here')
}

function isText(given: unknown): given is string {
  return typeof given === 'string' && !/\p{Cc}/u.test(given)
}

function parseBasic(place: string, given: unknown): ReturnType<typeof basicCredentials> {
  if (!isRecord(given)) return refuse(place, 'an object with "username" and "password"')
  checkFields(refuse, place, given, ['username', 'password'])
  const { username, password } = given
  // RFC 7617 section 2: a colon would end the user's name.
  if (!isText(username) || username.includes(':')) return refuse(`${place}.username`, 'a text without a colon and control characters')
  return isText(password) ? basicCredentials(username, password) : refuse(`${place}.password`, 'a text without control characters')
}
