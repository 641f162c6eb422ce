/** What goes between the main thread and the sitemap thread. Types only. */
import type { SitemapEnd, SitemapHead, SitemapPart } from './types.ts'

/** What is asked of a stream, one thing at a time. */
export type SitemapCall =
  | { readonly kind: 'push'; readonly chunk: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'more' }
  | { readonly kind: 'end'; readonly isCut: boolean }

/** `call` numbers what is answered. */
export type NumberedCall = SitemapCall & { readonly stream: number; readonly call: number }

export type SitemapRequest =
  | NumberedCall
  | { readonly kind: 'open'; readonly stream: number; readonly head: SitemapHead }
  | { readonly kind: 'close'; readonly stream: number }
  | { readonly kind: 'exit' }

export type SitemapAnswer =
  | { readonly call: number; readonly part: SitemapPart | (SitemapEnd & SitemapPart) }
  | { readonly call: number; readonly error: string }
