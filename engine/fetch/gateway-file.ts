/**
 * The file of `--gateway`: found, read within a bound, and checked. Main thread; once for a command and once for a crawl.
 * What it holds is secret, so no message repeats a part of it: not even what JSON.parse says, which quotes the text.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { SluiceError } from '../core/errors.ts'
import { GatewayConfigs, parseGateways } from '../core/gateway-config.ts'
import { limits } from '../core/limits.ts'

/** The gateways that an option names. Throws `file_unreadable` and `bad_option`. */
export function readGateways(option: string | GatewayConfigs | undefined): GatewayConfigs {
  if (option === undefined) return new GatewayConfigs([])
  return option instanceof GatewayConfigs ? option : parseGateways(jsonOf(option, textOf(option)))
}

function textOf(path: string): string {
  const buffer = Buffer.alloc(limits.gatewayFileBytesMax + 1)
  let length = 0
  try {
    const file = openSync(path, 'r')
    try {
      for (let read = -1; read !== 0 && length < buffer.length; length += read) read = readSync(file, buffer, length, buffer.length - length, null)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw new SluiceError('file_unreadable', `--gateway: expected a file, given ${path}: ${(error as Error).message}`, { cause: error })
  }
  if (length > limits.gatewayFileBytesMax) throw new SluiceError('bad_option', `--gateway: ${path}: expected a file of at most ${limits.gatewayFileBytesMax} bytes`)
  return buffer.toString('utf8', 0, length)
}

function jsonOf(path: string, text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown
  } catch (error) {
    const at = /position (\d+)/.exec((error as Error).message)?.[1]
    const place = at === undefined ? '' : ` (line ${text.slice(0, Number(at)).split('\n').length})`
    throw new SluiceError('bad_option', `--gateway: ${path}: expected JSON${place}; what it holds is not shown here`)
  }
}
