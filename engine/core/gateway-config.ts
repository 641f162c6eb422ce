/**
 * The gateways of a crawl as the operator wrote them, checked: HTTP proxies and URL-template APIs, and which hosts go
 * through which. Every refusal names the place (`gateways[1].hosts[0]`) and what was expected there, and repeats what was
 * given only where no secret can stand. Leaf module, pure.
 */
import { readConcurrency, type Concurrency } from './concurrency.ts'
import { HostPatterns } from './host-patterns.ts'
import { limits } from './limits.ts'
import { basicCredentials, checkFields, isRecord, parseHeaders, refusalsOf, token, type Refuse, type SecretField } from './secret-config.ts'
import { Secret } from './secret.ts'

interface GatewayGivenBase {
  /** Letters, digits, `.`, `_` and `-`: it stands in records and in `stats()`. */
  readonly name: string
  /** `*`, `*.example.com` (every name below it) or `example.com`. The first gateway with a pattern that matches is used. */
  readonly hosts: readonly string[]
  /** Requests at once through it; adapts between floor and ceiling. Default 4:1:32. */
  readonly concurrency?: Concurrency | string
  /** Its answers with these statuses say that the quota is spent. Default 509 and 402. */
  readonly quotaStatus?: readonly number[]
  /** Header of such an answer that says when the quota is filled again: seconds, seconds since 1970 or an HTTP date. Default x-ratelimit-reset. */
  readonly resetHeader?: string
  /** It tries again by itself what fails, so Sluice does not. Default false. */
  readonly retries?: boolean
}

/** One gateway, as it stands in the file. */
export type GatewayGiven = GatewayGivenBase & (
  /** `http://USER:PASSWORD@HOST:PORT`, or https; user and password may be absent. */
  | { readonly proxy: string }
  /** A URL with `{url}` in its path or query, where the escaped address of the page goes, and headers to send with it. */
  | { readonly template: string; readonly headers?: Readonly<Record<string, string>> }
)

/** Content of the file of `--gateway`. */
export interface GatewayFile {
  readonly gateways: readonly GatewayGiven[]
}

interface GatewayBase {
  readonly name: string
  readonly hosts: HostPatterns
  readonly concurrency: Concurrency
  readonly quotaStatus: readonly number[]
  /** In lower case. */
  readonly resetHeader: string
  readonly retries: boolean
}

export interface ProxyGateway extends GatewayBase {
  readonly kind: 'proxy'
  /** TLS to the proxy itself. */
  readonly secure: boolean
  /** As in a URL: lower case, IPv6 in brackets. */
  readonly host: string
  readonly port: number
  /** Value of Proxy-Authorization. */
  readonly authorization: Secret | undefined
}

export interface TemplateGateway extends GatewayBase {
  readonly kind: 'template'
  readonly template: Secret
  readonly headers: readonly SecretField[]
}

export type GatewayConfig = ProxyGateway | TemplateGateway

/** A checked list; what an option that was given as an object resolves to. Its JSON holds no secret, and is not read back. */
export class GatewayConfigs {
  readonly list: readonly GatewayConfig[]

  constructor(list: readonly GatewayConfig[]) {
    this.list = Object.freeze([...list])
    Object.freeze(this)
  }
}

const fields = ['name', 'hosts', 'concurrency', 'quotaStatus', 'resetHeader', 'retries'] as const
const refuse: Refuse = refusalsOf('--gateway')

function shown(given: unknown): string {
  return (JSON.stringify(given) ?? String(given)).slice(0, 100)
}

/** Reads the content of a gateway file, or what the library was given in its place. Throws `bad_option`. */
export function parseGateways(given: unknown): GatewayConfigs {
  if (given instanceof GatewayConfigs) return given
  if (!isRecord(given)) refuse('the file', 'an object with a list "gateways"')
  checkFields(refuse, 'the file', given, ['gateways'])
  const { gateways } = given
  if (!Array.isArray(gateways) || gateways.length === 0 || gateways.length > limits.gatewaysMax) refuse('gateways', `a list of 1 to ${limits.gatewaysMax} gateways`)
  const list = gateways.map((one: unknown, at) => parseGateway(`gateways[${at}]`, one))
  const twice = list.find(({ name }, at) => list.findIndex((other) => other.name === name) < at)
  if (twice !== undefined) refuse('gateways', `each name once, given ${shown(twice.name)} twice`)
  return new GatewayConfigs(list)
}

function parseGateway(place: string, given: unknown): GatewayConfig {
  if (!isRecord(given)) refuse(place, 'an object')
  if ((given['proxy'] === undefined) === (given['template'] === undefined)) refuse(place, 'either "proxy" or "template"')
  if (given['proxy'] !== undefined) {
    checkFields(refuse, place, given, ['proxy', ...fields])
    return Object.freeze({ kind: 'proxy', ...parseBase(place, given), ...parseProxy(`${place}.proxy`, given['proxy']) })
  }
  checkFields(refuse, place, given, ['template', 'headers', ...fields])
  const template = parseTemplate(`${place}.template`, given['template'])
  return Object.freeze({ kind: 'template', ...parseBase(place, given), template, headers: parseHeaders(refuse, `${place}.headers`, given['headers'] ?? {}) })
}

function parseBase(place: string, { name, hosts, concurrency = '4:1:32', quotaStatus = [509, 402], resetHeader = 'x-ratelimit-reset', retries = false }: Readonly<Record<string, unknown>>): GatewayBase {
  if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name)) refuse(`${place}.name`, 'up to 64 letters, digits, ".", "_" and "-"')
  if (!Array.isArray(quotaStatus) || quotaStatus.some((status) => !Number.isInteger(status) || status < 400 || status > 599)) {
    refuse(`${place}.quotaStatus`, `a list of statuses from 400 to 599, given ${shown(quotaStatus)}`)
  }
  if (typeof resetHeader !== 'string' || !token.test(resetHeader)) refuse(`${place}.resetHeader`, `the name of a header, given ${shown(resetHeader)}`)
  if (typeof retries !== 'boolean') refuse(`${place}.retries`, `true or false, given ${shown(retries)}`)
  return {
    name, hosts: parseHosts(`${place}.hosts`, hosts),
    concurrency: readConcurrency(concurrency) ?? refuse(`${place}.concurrency`, `START:FLOOR:CEILING with FLOOR <= START <= CEILING, given ${shown(concurrency)}`),
    quotaStatus: Object.freeze([...quotaStatus as number[]]), resetHeader: resetHeader.toLowerCase(), retries,
  }
}

function parseHosts(place: string, given: unknown): HostPatterns {
  if (!Array.isArray(given) || given.length === 0) refuse(place, 'a list of hosts such as "*", "*.example.com" or "example.com"')
  const patterns = new HostPatterns()
  for (const [at, text] of given.entries()) {
    if (typeof text !== 'string' || !patterns.add(text)) refuse(`${place}[${at}]`, `"*", "*.example.com" or "example.com", given ${shown(text)}`)
  }
  return patterns
}

function parseProxy(place: string, given: unknown): Pick<ProxyGateway, 'secure' | 'host' | 'port' | 'authorization'> {
  const url = urlOf(given)
  if (url === undefined || url.pathname !== '/' || url.search !== '' || url.hash !== '') refuse(place, 'http://USER:PASSWORD@HOST:PORT, or https, without a path; it is not shown here')
  const secure = url.protocol === 'https:'
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  const authorization = url.username === '' && url.password === '' ? undefined : basicOf(place, url)
  return { secure, host: url.hostname, port, authorization }
}

function basicOf(place: string, { username, password }: URL): Secret {
  try {
    return basicCredentials(decodeURIComponent(username), decodeURIComponent(password))
  } catch {
    return refuse(place, 'a user and a password whose % begins an escape; they are not shown here')
  }
}

/** `{url}` may stand anywhere behind the API's host: what a page's address is put into must not say where to connect to. */
function parseTemplate(place: string, given: unknown): Secret {
  const parts = typeof given === 'string' ? given.split('{url}') : []
  const [one, other] = ['a', 'b.c'].map((text) => urlOf(parts.join(text)))
  const isTemplate = parts.length === 2 && one !== undefined && other !== undefined && one.origin === other.origin
    && one.href !== other.href && one.username === '' && one.password === '' && one.hash === ''
  if (!isTemplate) refuse(place, 'an http or https URL with {url} once in its path or query, without user and fragment; it is not shown here')
  return new Secret(given as string)
}

function urlOf(given: unknown): URL | undefined {
  if (typeof given !== 'string' || !/^https?:\/\//i.test(given) || !URL.canParse(given)) return undefined
  return new URL(given)
}
