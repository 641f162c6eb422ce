/** A gateway in a process of its own, as its parent sees it. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { HostTally } from '../../engine/demo/index.ts'
import type { FromGateway, ToGateway } from './gateway-entry.ts'
import type { GatewayRules } from './scenario.ts'

export interface Gateway {
  readonly port: number
  setRules(rules: GatewayRules): Promise<void>
  takeTally(): Promise<HostTally>
  close(): void
}

export async function spawnGateway(resolve: ReadonlyMap<string, string>): Promise<Gateway> {
  const child = fork(fileURLToPath(new URL('./gateway-entry.js', import.meta.url)), [JSON.stringify(Object.fromEntries(resolve))], { execArgv: [] })
  const next = async (): Promise<FromGateway> => ((await once(child, 'message')) as [FromGateway])[0]
  const ready = await next()
  if (ready.type !== 'ready') throw new Error(`the gateway began with ${ready.type}`)
  let asking: Promise<unknown> = Promise.resolve()
  const ask = (message: ToGateway): Promise<HostTally> => {
    // One at a time: answers carry no number.
    const before = asking
    const answer = (async () => {
      await before
      child.send(message)
      return (await next() as Extract<FromGateway, { type: 'done' }>).tally
    })()
    asking = answer
    return answer
  }
  return {
    port: ready.port,
    setRules: async (rules) => void await ask({ type: 'rules', rules }),
    takeTally: () => ask({ type: 'takeTally' }),
    close: () => child.disconnect(),
  }
}
