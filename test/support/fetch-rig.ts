/**
 * What the tests of the fetcher share: a fetcher wired to the fault server.
 */
import { createAddressGuard } from '../../engine/fetch/address-guard.ts'
import { ByteBudget } from '../../engine/fetch/byte-budget.ts'
import { acceptBody } from '../../engine/fetch/content-type.ts'
import { Gateways } from '../../engine/fetch/gateways.ts'
import { parseGateways, type GatewayFile } from '../../engine/core/gateway-config.ts'
import { Fetcher, type FetchRequest, type FetchResult, type RequestMeter } from '../../engine/fetch/fetcher.ts'
import { Resolver } from '../../engine/fetch/resolver.ts'
import { createTlsTrust } from '../../engine/fetch/tls-context.ts'
import { systemClock, type Clock } from '../../engine/core/clock.ts'
import type { Session } from '../../engine/web/session.ts'

/** Resolves when the condition holds; looks once a turn of the event loop. The test's own timeout bounds it. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

export interface RigOptions {
  readonly clock?: Clock
  readonly budgetBytes?: number
  readonly allowAddress?: readonly string[]
  readonly pins?: Readonly<Record<string, string>>
  readonly ca?: string
  readonly insecure?: boolean
  readonly socketsIdleMax?: number
  readonly gateways?: GatewayFile
  readonly rates?: RequestMeter
  readonly session?: Session
  readonly isExcluded?: (host: string) => boolean
}

export interface Rig {
  readonly fetcher: Fetcher
  readonly budget: ByteBudget
  /** Without any, one that has none. */
  readonly gateways: Gateways
  get(url: string, options?: Partial<FetchRequest>): Promise<FetchResult>
}

const userAgent = 'SluiceTest/1.0 (+https://example.com/bot)'

/** A fetcher that may connect to loopback and knows fault.test; its look-up fails for every other name. */
export function makeRig(options: RigOptions = {}): Rig {
  const clock = options.clock ?? systemClock
  const budget = new ByteBudget(options.budgetBytes ?? 8 * 1_048_576)
  const pins = { 'fault.test': '127.0.0.1', 'wrong.example': '127.0.0.1', ...options.pins }
  const guard = createAddressGuard(options.allowAddress ?? ['127.0.0.0/8', '::1/128'])
  const trust = createTlsTrust({ ca: options.ca, insecure: options.insecure ?? false })
  const configs = options.gateways === undefined ? [] : parseGateways(options.gateways).list
  const gateways = new Gateways({ configs, guard, trust, clock, random: () => 0.5, userAgent, pins })
  const fetcher = new Fetcher({
    clock,
    budget,
    guard,
    trust,
    gateways,
    resolver: new Resolver({
      clock,
      pins,
      lookup: { lookup: async () => ({ ok: false, code: 'dns_not_found', detail: 'there is no such name' }), close: () => {} },
    }),
    userAgent,
    ...(options.session && { session: options.session }),
    ...(options.isExcluded && { isExcluded: options.isExcluded }),
    ...(options.rates && { rates: options.rates }),
    ...(options.socketsIdleMax === undefined ? {} : { socketsIdleMax: options.socketsIdleMax }),
  })
  return {
    fetcher,
    budget,
    gateways,
    get: (url, request) => fetcher.fetch({ url, bodyBytesMax: 250 * 1_024, deadlineMs: 20_000, acceptBody, ...request }),
  }
}
