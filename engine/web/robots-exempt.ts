/**
 * The hosts of `--robots FILE`: those whose owner asked for something else than what their robots.txt says. Main thread;
 * read once, when the crawl is opened. Every other host is obeyed, so a pattern of all hosts is refused.
 */
import { SluiceError } from '../core/errors.ts'
import { HostPatterns } from '../core/host-patterns.ts'
import { limits } from '../core/limits.ts'
import { readTextFile } from '../fetch/secret-file.ts'

/** Whether a host, as a queued URL has it, is exempt. Throws `file_unreadable`, and `bad_option` for a line that is no name. */
export function readExemptHosts(robots: string): (host: string) => boolean {
  if (robots === 'obey') return () => false
  const patterns = new HostPatterns()
  for (const [at, line] of readTextFile('--robots', robots, limits.robotsExemptBytesMax).replace(/^\uFEFF/, '').split('\n').entries()) {
    const name = line.replace(/#.*/, '').trim()
    if (name === '' || (name !== '*' && patterns.add(name))) continue
    throw new SluiceError('bad_option', `--robots: ${robots}, line ${at + 1}: expected a host name such as example.com or *.example.com, given ${JSON.stringify(name.slice(0, 100))}`)
  }
  return (host) => patterns.has(host)
}
