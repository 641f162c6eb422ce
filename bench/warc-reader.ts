/** WARC files as an independent reader sees them: warcio, to the end of the file. For tests and benchmarks. */
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { WARCParser } from 'warcio'

export interface WarcResponse {
  /** Name inside the crawl directory, and where in that file the record begins. */
  readonly file: string
  readonly offset: number
  readonly url: string
  /** As stored: the transfer coding removed, the content coding kept. */
  readonly payload: Uint8Array
  readonly status: number
  readonly truncated: string | undefined
}

/** Every response record of the directory's WARC files, in file order. Rejects when a file cannot be read to its end. */
export async function readWarcs(dir: string): Promise<WarcResponse[]> {
  const names = (await readdir(join(dir, 'warc'))).filter((name) => name.endsWith('.warc.gz')).sort()
  const responses: WarcResponse[] = []
  for (const name of names) {
    const parser = new WARCParser(createReadStream(join(dir, 'warc', name)))
    for await (const record of parser) {
      const payload = await record.readFully(false)
      if (record.warcType !== 'response') continue
      responses.push({
        file: `warc/${name}`, offset: parser.offset, url: record.warcTargetURI!, payload,
        status: Number(record.httpHeaders?.statusCode), truncated: record.warcHeader('WARC-Truncated') ?? undefined,
      })
    }
  }
  return responses
}
