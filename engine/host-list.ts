/**
 * A file of hosts: one name or `*.example.com` a line, `#` begins a comment. Two options take one: `--exclude-hosts`, which
 * reads it again (excluded-hosts.ts), and `--robots`. Main thread. Invariant: no more is read than the bound, whatever
 * the file says of its size.
 */
import { open, stat } from 'node:fs/promises'
import { SluiceError } from './core/errors.ts'
import { HostPatterns } from './core/host-patterns.ts'
import { limits } from './core/limits.ts'

/** `what` a user may have meant. Throws `file_unreadable`; `bad_option` for what is too long, and for a line that is no name or means all hosts. */
export async function readHostList(flag: string, file: string, what = 'a file of host names'): Promise<HostPatterns> {
  const patterns = new HostPatterns()
  for (const [at, line] of (await readText(flag, file, what)).split('\n').entries()) {
    const name = line.split('#', 1)[0]!.trim()
    if (name === '' || (name !== '*' && patterns.add(name))) continue
    throw new SluiceError('bad_option', `${flag}: ${file}, line ${at + 1}: expected a host name such as example.com or *.example.com, given ${JSON.stringify(name.slice(0, 100))}`)
  }
  return patterns
}

async function readText(flag: string, file: string, what: string): Promise<string> {
  const bytesMax = limits.hostListBytesMax
  const parts: Uint8Array[] = []
  let bytes = 0
  try {
    // What is none may have no end, or let nobody open it.
    if (!(await stat(file)).isFile()) throw new Error('it is no regular file')
    const handle = await open(file)
    for await (const part of handle.createReadStream({ end: bytesMax })) {
      parts.push(part as Uint8Array)
      bytes += (part as Uint8Array).byteLength
    }
  } catch (cause) {
    throw new SluiceError('file_unreadable', `${flag}: expected ${what}, given ${file}: ${(cause as Error).message}`, { cause })
  }
  if (bytes > bytesMax) throw new SluiceError('bad_option', `${flag}: ${file}: expected a file of at most ${bytesMax} bytes`)
  // Editors on Windows begin with a byte order mark.
  return Buffer.concat(parts).toString().replace(/^\uFEFF/, '')
}
