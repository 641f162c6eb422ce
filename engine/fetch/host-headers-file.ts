/** The headers by origin that an option names, by the path of their file or as they are. Main thread. */
import { HostHeaders, parseHostHeaders } from '../core/host-headers.ts'
import { limits } from '../core/limits.ts'
import { readSecretFile } from './secret-file.ts'

/** Throws `file_unreadable` and `bad_option`. */
export function readHostHeaders(option: string | HostHeaders | undefined): HostHeaders {
  if (option === undefined) return new HostHeaders()
  return option instanceof HostHeaders ? option : parseHostHeaders(readSecretFile('--host-headers', option, limits.hostHeadersFileBytesMax))
}
