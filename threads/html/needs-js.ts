/**
 * Whether a page can be read without running its scripts, judged by what it holds without them. Pure; runs in a parse
 * worker. A page needs scripts when it has
 *   fewer than 200 characters of text, and loads scripts, or has more than 1,000 bytes of its own, or a few that a known
 *   framework has put there; or
 *   fewer than 1,000 characters of text (a menu, a footer, a notice about cookies), a script, and the empty element of
 *   a known application, or words that no page has that shows something without scripts.
 * A page that a server rendered by the same frameworks has text, and its element is not empty. Marks are looked for only
 * where text is short: an ordinary page costs one comparison.
 *
 * A document that was cut is never said to need scripts: styles and scripts may come first and the text after the cut.
 * Measured on the 360 corpus pages: read whole, none is said to need scripts; cut at 250 KB, 104 are cut and 31 of these
 * have fewer than 200 characters of text left, so that 27 would be said to need scripts, each of them wrongly.
 */
export interface ReadableFacts {
  /** Characters of text, see HtmlFacts. */
  readonly textLength: number
  /** Bytes of scripts in the document that run; data in a script element is none. */
  readonly scriptLength: number
  /** Scripts that are loaded from elsewhere. */
  readonly scriptsLoaded: number
}

/** Fewer characters of text than this on a page with scripts: it is built in the browser. */
const TEXT_CHARS_FEW = 200
/** With more text than this there is something to read. The shortest readable corpus page with scripts has 244. */
const TEXT_CHARS_SHELL_MAX = 1_000
/** Shorter scripts in the document are settings and counters, not an application. */
const SCRIPT_BYTES_MANY = 1_000

/** An application's element with nothing in it, and what the templates of React, Vue and others say inside noscript. */
const emptyShell = new RegExp([
  String.raw`[\s"'/]id=["']?(?:root|app|__next|__nuxt|___gatsby|q-app)(?:["'\s][^>]{0,200})?>\s*</`,
  String.raw`<app-root\b[^>]{0,200}>\s*(?:loading\W*)?</app-root`,
  String.raw`to enable javascript to run this app|work properly without javascript|\b(?:app|application|site|page) requires javascript`,
].join('|'), 'i')

/** What a framework leaves on each of its pages, rendered or not: state for the browser, settings, versions. */
const frameworkMarks = new RegExp([
  String.raw`\b__(?:NUXT__|NEXT_DATA__|sveltekit_|remixContext\b)|\bdata-reactroot\b`,
  String.raw`[\s"'/]id=["']?(?:root|app|__next|__nuxt|___gatsby|q-app)["'\s>]`,
  String.raw`<app-root\b|\bng-(?:version|app)=|/config/environment["']`,
].join('|'))

/** `bytes` is the document as it was scanned, its markup in ASCII; `isCut` says that it goes on after them. */
export function needsJs({ textLength, scriptLength, scriptsLoaded }: ReadableFacts, bytes: Uint8Array, isCut: boolean): boolean {
  if (textLength >= TEXT_CHARS_SHELL_MAX || isCut || scriptLength + scriptsLoaded === 0) return false
  const isBare = textLength < TEXT_CHARS_FEW
  if (isBare && (scriptsLoaded > 0 || scriptLength > SCRIPT_BYTES_MANY)) return true
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return emptyShell.test(text) || (isBare && frameworkMarks.test(text))
}
