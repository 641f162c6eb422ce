/**
 * The records of the demonstration web. *Page* is a URL that the web answers; *link* is one href in a page; *fault*
 * is what a page does in place of answering well. Types and constants only.
 */

export type Coding = 'gzip' | 'br' | 'identity'

/** What a faulty page does. Only pages on which no other page depends are faulty. */
export const faults = [
  'not_found', 'gone', 'server_error', 'unavailable', 'redirect', 'redirect_chain', 'redirect_self',
  'reset', 'no_answer', 'stall', 'wrong_type', 'broken_gzip', 'truncated',
] as const

export type Fault = (typeof faults)[number]

/** Where a page is: as much of it as a link needs. */
export interface Place {
  readonly url: string
  readonly hostIndex: number
  /** Path and query, as in the request line. */
  readonly path: string
}

export interface Page extends Place {
  /** Host name, without the port. */
  readonly host: string
  /** `page`: counted among the web's pages. `private`: served, and forbidden by robots.txt. `hop`: inside a redirect chain. */
  readonly kind: 'page' | 'private' | 'hop'
  /** Position within the host; for a private page, among the private ones. */
  readonly index: number
  /** Which hop of a redirect chain, from 1; 0 elsewhere. */
  readonly hop: number
  /** Decoded size aimed at, for pages whose body is made. */
  readonly bytesTarget: number
  /** The coding in which the server would rather send this page. */
  readonly coding: Coding
  readonly fault: Fault | 'none'
  /** The edition in which it changed last; absent: it is as it was at first. */
  readonly revision?: number
}

export interface Link {
  /** As it stands in the document, before character references. */
  readonly href: string
  /** The absolute URL, with its fragment; empty when the href has no http(s) URL. */
  readonly url: string
}
