/**
 * The subset of XML that sitemaps and feeds need, from text that comes in pieces: elements, text, CDATA; comments,
 * processing instructions and the document type are skipped. Tags must match as XML demands; at the first fault it stops.
 * Nothing is ever fetched or expanded: no external entity, no include, and of the named references only the five of XML;
 * another one stands for nothing.
 *
 * Invariants: pieces of any size give the same calls, but that a text may come in several; what is kept between two
 * writes is at most one tag or document type, of `TOKEN_CHARS_MAX` characters; open elements are `DEPTH_MAX` at most. So
 * the work is linear in the text, and in the number of writes times that bound. Runs in the sitemap thread.
 */
const TOKEN_CHARS_MAX = 16 * 1024
const DEPTH_MAX = 256
const NAME_CHARS_MAX = 256
/** `&`, at most 32 characters, `;`. */
const REFERENCE_CHARS_MAX = 34
const reference = /&(?:#(\d{1,8})|#x([\da-f]{1,8})|([\w:.-]{1,32}));/gi
const known: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const [QUOTE, APOSTROPHE, SLASH, LESS, GREATER, EXCLAMATION, QUESTION] = [0x22, 0x27, 0x2f, 0x3c, 0x3e, 0x21, 0x3f]
const [BRACKET, BRACKET_END] = [0x5b, 0x5d]
const UNFINISHED = -1
const BROKEN = -2

export interface XmlHandler {
  /** `attributes`: as written, for `attributeOf`. */
  open(name: string, attributes: string): void
  /** A piece of text as written; `isPlain`: from CDATA, where `&` stands for itself. Else for `unescaped`. */
  text(raw: string, isPlain: boolean): void
  close(): void
  doctype(): void
}

/** The text with its character references replaced. An `&` that begins none stands for itself: many files do not escape it. */
export function unescaped(raw: string): string {
  return raw.includes('&') ? raw.replaceAll(reference, characters) : raw
}

function characters(_: string, decimal: string | undefined, hex: string | undefined, name: string | undefined): string {
  if (name !== undefined) return known[name] ?? ''
  const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal)
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ''
}

/** The value of an attribute, or undefined. What follows a fault among the attributes is not read. */
export function attributeOf(attributes: string, name: string): string | undefined {
  if (!attributes.includes(name)) return undefined
  const one = /\s*([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/y
  for (let match = one.exec(attributes); match !== null; match = one.exec(attributes)) {
    if (match[1] === name) return unescaped(match[2] ?? match[3]!)
  }
  return undefined
}

/** Where a tag ends whose `<` is before `from`, `>` in quotes apart. */
function tagEnd(text: string, from: number, until: number): number {
  let quote = 0
  for (let at = from; at < until; at += 1) {
    const code = text.charCodeAt(at)
    if (code === LESS) return BROKEN
    if (quote !== 0) quote = code === quote ? 0 : quote
    else if (code === QUOTE || code === APOSTROPHE) quote = code
    else if (code === GREATER) return at
  }
  return UNFINISHED
}

/** Where a document type ends: its internal subset holds declarations, quoted texts and comments. */
function doctypeEnd(text: string, from: number, until: number): number {
  let [quote, depth] = [0, 0]
  for (let at = from; at < until; at += 1) {
    const code = text.charCodeAt(at)
    if (quote !== 0) {
      quote = code === quote ? 0 : quote
    } else if (code === LESS && text.startsWith('<!--', at)) {
      const end = text.indexOf('-->', at + 4)
      if (end === -1) return UNFINISHED
      at = end + 2
    } else if (code === QUOTE || code === APOSTROPHE) {
      quote = code
    } else if (code === BRACKET || code === LESS) {
      depth += 1
    } else if (code === BRACKET_END) {
      depth -= 1
    } else if (code === GREATER) {
      if (depth <= 0) return at
      depth -= 1
    }
  }
  return UNFINISHED
}

export class XmlScanner {
  readonly #handler: XmlHandler
  readonly #names: string[] = []
  #rest = ''
  /** In a comment, a processing instruction or CDATA, which ends so. */
  #until: '-->' | '?>' | ']]>' | undefined
  #hadRoot = false
  #fault: string | undefined
  /** Characters that were looked at, those of unfinished tokens each time: what the work is measured by. */
  steps = 0

  constructor(handler: XmlHandler) {
    this.#handler = handler
  }

  /** Why nothing more is read. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** The root element has begun, and has ended. */
  get isComplete(): boolean {
    return this.#hadRoot && this.#names.length === 0
  }

  fail(reason: string): void {
    this.#fault ??= reason
    this.#rest = ''
  }

  write(piece: string): void {
    if (this.#fault !== undefined) return
    const text = this.#rest + piece
    let at = 0
    for (let next = this.#step(text, 0); next !== at && this.#fault === undefined; next = this.#step(text, at)) {
      this.steps += next - at
      at = next
    }
    this.steps += text.length - at
    this.#rest = this.#fault === undefined ? text.slice(at) : ''
  }

  /** Reads one token, or some of a long one. Answers where the next begins; the same place when more text is needed. */
  #step(text: string, at: number): number {
    if (at === text.length) return at
    if (this.#until !== undefined) return this.#skip(text, at, this.#until)
    if (text.charCodeAt(at) !== LESS) return this.#text(text, at)
    const code = text.charCodeAt(at + 1)
    if (code === QUESTION) return this.#begin('?>', at + 2)
    if (code === EXCLAMATION) return this.#declaration(text, at)
    return this.#tag(text, at)
  }

  #text(text: string, at: number): number {
    let end = text.indexOf('<', at)
    if (end === -1) {
      // A reference may go on in the next piece.
      const mark = text.lastIndexOf('&')
      end = mark >= at && text.length - mark < REFERENCE_CHARS_MAX && !text.includes(';', mark) ? mark : text.length
    }
    if (end > at) this.#handler.text(text.slice(at, end), false)
    return end
  }

  #begin(until: '-->' | '?>' | ']]>', at: number): number {
    this.#until = until
    return at
  }

  #skip(text: string, at: number, until: '-->' | '?>' | ']]>'): number {
    const found = text.indexOf(until, at)
    const end = found === -1 ? Math.max(at, text.length - until.length + 1) : found
    if (until === ']]>' && end > at) this.#handler.text(text.slice(at, end), true)
    if (found === -1) return end
    this.#until = undefined
    return found + until.length
  }

  #declaration(text: string, at: number): number {
    if (text.startsWith('<!--', at)) return this.#begin('-->', at + 4)
    const start = text.slice(at, at + 9)
    if (start === '<![CDATA[') return this.#begin(']]>', at + 9)
    if (start.length < 9) return at
    if (start.toUpperCase() !== '<!DOCTYPE') return this.#broken(`there is ${JSON.stringify(start)}`, at)
    const end = this.#found(doctypeEnd(text, at + 9, Math.min(text.length, at + TOKEN_CHARS_MAX)), text, at)
    if (end === at) return at
    this.#handler.doctype()
    return end + 1
  }

  #tag(text: string, at: number): number {
    const end = this.#found(tagEnd(text, at + 1, Math.min(text.length, at + TOKEN_CHARS_MAX)), text, at)
    if (end === at) return at
    const isEnd = text.charCodeAt(at + 1) === SLASH
    const isEmpty = !isEnd && text.charCodeAt(end - 1) === SLASH
    const tag = text.slice(at + (isEnd ? 2 : 1), isEmpty ? end - 1 : end)
    const nameEnd = tag.search(/[\s/]/)
    const name = nameEnd === -1 ? tag : tag.slice(0, nameEnd)
    if (name.length > NAME_CHARS_MAX || !/^[A-Za-z_:\u0080-\uffff]/.test(name)) return this.#broken('a tag has no name', at)
    if (isEnd) this.#close(name, at)
    else this.#open(name, tag.slice(name.length), isEmpty)
    return end + 1
  }

  /** Where a token ends; `at`: it goes on, or is broken or too long. */
  #found(end: number, text: string, at: number): number {
    if (end === BROKEN) return this.#broken('there is a < in a tag', at)
    if (end !== UNFINISHED) return end
    return text.length - at >= TOKEN_CHARS_MAX ? this.#broken('a tag or document type is too long', at) : at
  }

  #open(name: string, attributes: string, isEmpty: boolean): void {
    if (this.isComplete) return this.fail(`not well formed: <${name}> follows the root element`)
    if (this.#names.length === DEPTH_MAX) return this.fail('elements are nested too deeply')
    this.#hadRoot = true
    this.#names.push(name)
    this.#handler.open(name, attributes)
    if (isEmpty && this.#fault === undefined) this.#close(name, 0)
  }

  #close(name: string, at: number): void {
    const open = this.#names.at(-1)
    if (open !== name) return void this.#broken(open === undefined ? `</${name}> ends nothing` : `</${name}> stands where </${open}> should`, at)
    this.#handler.close()
    this.#names.pop()
  }

  #broken(what: string, at: number): number {
    this.fail(`not well formed: ${what}`)
    return at
  }
}
