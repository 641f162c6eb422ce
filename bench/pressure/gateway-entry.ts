/**
 * Main module of a gateway's process: a scraping API with a ceiling and a quota. `/?url=...` is fetched from the
 * demonstration web and passed on. Rules come over the IPC channel, the tally is sent when asked for; ends with its parent.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HostTally } from '../../engine/demo/index.ts'
import type { GatewayRules } from './scenario.ts'

export type ToGateway = { readonly type: 'rules'; readonly rules: GatewayRules } | { readonly type: 'takeTally' }
export type FromGateway = { readonly type: 'ready'; readonly port: number } | { readonly type: 'done'; readonly tally: HostTally }

const passedOn = ['content-type', 'content-encoding', 'content-length', 'retry-after']
const addresses = new Map(Object.entries(JSON.parse(process.argv[2]!) as Record<string, string>))
const agent = new http.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
const tally = { requests: 0, refused: 0, inFlight: 0, inFlightPeak: 0 }
let rules: GatewayRules = {}
let quotaResetsAtMs = 0

const server = http.createServer((request, response) => {
  tally.requests += 1
  tally.inFlight += 1
  tally.inFlightPeak = Math.max(tally.inFlightPeak, tally.inFlight)
  response.once('close', () => { tally.inFlight -= 1 })
  const quotaMs = quotaResetsAtMs - performance.now()
  if (quotaMs > 0) return response.writeHead(402, { 'x-ratelimit-reset': String(Math.ceil(quotaMs / 1_000)) }).end()
  if (tally.inFlight > (rules.concurrentMax ?? Number.POSITIVE_INFINITY)) {
    tally.refused += 1
    return response.writeHead(429).end()
  }
  const wanted = new URL(new URL(request.url!, 'http://gateway').searchParams.get('url')!)
  const host = addresses.get(wanted.hostname)
  if (host === undefined) return response.writeHead(400).end()
  const headers = { 'host': wanted.host, 'user-agent': request.headers['user-agent'] ?? '', 'accept-encoding': request.headers['accept-encoding'] ?? '' }
  const onward = http.get({ host, port: wanted.port, path: wanted.pathname + wanted.search, headers, agent }, (answer) => {
    const kept = Object.entries(answer.headers).filter(([name]) => passedOn.includes(name))
    response.writeHead(answer.statusCode!, Object.fromEntries(kept))
    answer.pipe(response)
  })
  onward.on('error', () => response.destroy())
})

function tell(message: FromGateway): void {
  if (process.connected) process.send!(message, () => undefined)
}

process.on('message', (message: ToGateway) => {
  if (message.type === 'rules') {
    rules = message.rules
    quotaResetsAtMs = rules.quotaResetsInMs === undefined ? 0 : performance.now() + rules.quotaResetsInMs
  }
  tell({ type: 'done', tally: { ...tally } })
  tally.inFlightPeak = tally.inFlight
})
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => tell({ type: 'ready', port: (server.address() as AddressInfo).port }))
