/**
 * The head of a response: its header fields as they were sent, and the two that decide about the body. Pure.
 */
import { limits } from '../core/limits.ts'

export interface ResponseHead {
  readonly status: number
  /** At most `reasonCharsMax` of it. */
  readonly statusText: string
  /** Name, value, name, value, as sent and in that order; a byte is a character (ISO 8859-1). */
  readonly headers: readonly string[]
  /** `Name: value` lines, each ended by CRLF, without the status line. */
  readonly headerBlock: Uint8Array
  readonly contentType: string | undefined
  /** Bytes of the body if the head says so in a way that can be believed. */
  readonly contentLength: number | undefined
}

/** `raw` alternates between names and values. */
export function readHead(status: number, statusText: string, raw: readonly Uint8Array[]): ResponseHead {
  const headers = raw.map(latin1)
  let block = ''
  for (let at = 0; at + 1 < headers.length; at += 2) block += `${headers[at]}: ${headers[at + 1]}\r\n`
  return {
    status,
    statusText: statusText.slice(0, limits.reasonCharsMax),
    headers,
    headerBlock: Buffer.from(block, 'latin1'),
    contentType: headerOf(headers, 'content-type'),
    contentLength: lengthOf(status, headers),
  }
}

/** The first value of a header, by its lower-case name. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (headers[at]!.length === name.length && headers[at]!.toLowerCase() === name) return headers[at + 1]
  }
  return undefined
}

/** RFC 9112 section 6.3: these have no body, whatever they say. */
export function isBodiless({ status }: Pick<ResponseHead, 'status'>): boolean {
  return status === 204 || status === 304
}

function lengthOf(status: number, headers: readonly string[]): number | undefined {
  if (isBodiless({ status })) return 0
  const length = headerOf(headers, 'content-length')
  return length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

function latin1(field: Uint8Array): string {
  return Buffer.from(field.buffer, field.byteOffset, field.byteLength).toString('latin1')
}
