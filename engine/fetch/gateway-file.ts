/** The gateways that an option names, by the path of their file or as they are. Main thread. */
import { GatewayConfigs, parseGateways } from '../core/gateway-config.ts'
import { limits } from '../core/limits.ts'
import { readSecretFile } from './secret-file.ts'

/** Throws `file_unreadable` and `bad_option`. */
export function readGateways(option: string | GatewayConfigs | undefined): GatewayConfigs {
  if (option === undefined) return new GatewayConfigs([])
  return option instanceof GatewayConfigs ? option : parseGateways(readSecretFile('--gateway', option, limits.gatewayFileBytesMax))
}
