/** Where a server listens, as it is written for --listen and in a URL. Leaf module. */
import { isIP } from 'node:net'

/** Where a server listens. */
export interface ListenAddress {
  /** An IP address. */
  readonly address: string
  /** 0: any that is free. */
  readonly port: number
}

/** `9090`, `0.0.0.0:9090`, `[::1]:9090`, `localhost:9090`; undefined when it is none. */
export function parseListen(text: string): ListenAddress | undefined {
  const match = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(text)
  if (match === null || Number(match[3]) > 65_535) return undefined
  const [, six, four = 'localhost', port] = match
  const address = six ?? (four === 'localhost' ? '127.0.0.1' : four)
  return isIP(address) === (six === undefined ? 4 : 6) && !address.includes('%') ? { address, port: Number(port) } : undefined
}

/** The address as it stands in a URL. */
export function listenText({ address, port }: ListenAddress): string {
  return `${isIP(address) === 6 ? `[${address}]` : address}:${port}`
}
