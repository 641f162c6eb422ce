/**
 * html5lib's tokenizer tests, as far as they concern a scanner. The scanner shows no tokens, only facts of a document, so
 * each test is made a document whose facts follow from the tokens that html5lib expects:
 *
 *   tags        in the data state, with a start tag expected: each start tag is renamed to `a` and its n-th attribute to
 *               `href`, once for each n; the links must be the values that html5lib expects.
 *   hidden      in the data state, with `<` and a letter in the input but no start tag expected (comments, doctypes, tags
 *               that the end cuts off): each such name is renamed to `a href=hidden`; no link may be found.
 *   ending      in the data state, with no start tag expected, but a comment, doctype or end tag: a link after the input
 *               is found if the input leaves none of these open, and not otherwise.
 *   text        in the data state, with nothing but characters expected: the input is a title, and must be read as that text.
 *   attribute   the same, when the input is one character reference and nothing after it: it is an address as well.
 *   raw         in the other states: the input stands in the element that switches to the state, and a link after it is
 *               found if html5lib expects the end tag, and not otherwise.
 *
 * Renaming keeps the tokens, since the tokenizer looks at no name outside of raw text; where it does not (an attribute
 * that was named otherwise a second time), parse5's tokenizer says so and the variant is left out and counted.
 * Besides, every input is read as it stands, with a link after it, and compared with parse5.
 */
import { Tokenizer, TokenizerMode, type Token as Parse5Token } from 'parse5'
import { describe, expect, it } from 'vitest'
import { readHtml } from '../../threads/html/read-html.ts'
import { lacksCorpus, tokenizerTests, type Token, type TokenizerTest } from '../support/html-corpus.ts'
import { asUtf8, differenceOf, plainFacts, readByPattern, type PlainFacts, type Reader } from '../support/parse5-oracle.ts'

const read: Reader = (bytes, options) => plainFacts(readHtml(bytes, options))

interface StartTag {
  readonly name: string
  readonly start: number
  readonly end: number
  readonly attributes: readonly { readonly name: string; readonly value: string; readonly start: number }[]
}

/** The start tags of a text in the data state, by parse5's tokenizer. */
function startTagsOf(text: string): StartTag[] {
  const tags: StartTag[] = []
  const ignore = (): void => undefined
  const tokenizer = new Tokenizer({ sourceCodeLocationInfo: true }, {
    onStartTag(token: Parse5Token.TagToken) {
      const { startOffset, endOffset, attrs } = token.location!
      const attributes = token.attrs.map(({ name, value }) => ({ name, value, start: attrs![name]!.startOffset }))
      tags.push({ name: token.tagName, start: startOffset, end: endOffset, attributes })
    },
    onEndTag: ignore, onComment: ignore, onDoctype: ignore, onCharacter: ignore, onNullCharacter: ignore, onWhitespaceCharacter: ignore, onEof: ignore,
  })
  tokenizer.state = TokenizerMode.DATA
  tokenizer.write(text, true)
  return tags
}

/** A derived document and what the scanner must find in it: links, or a title, or both. */
interface Derived {
  readonly kind: 'tags' | 'hidden' | 'ending' | 'text' | 'attribute' | 'raw'
  readonly text: string
  readonly hrefs?: readonly string[]
  readonly title?: string
}

const leftOut = {
  xml: 'changes tokens for XML, as no HTML reader does',
  surrogate: 'holds a lone surrogate, which no bytes express',
  nul: 'holds a NUL, which text and raw text treat differently',
  endTag: 'holds an empty end tag, which is text in a title',
  renamed: 'renaming changes the tokens, by parse5 (none at present)',
  nothing: 'is empty',
  section: 'markup or a carriage return after the end of a CDATA section',
} as const
type Reason = keyof typeof leftOut

const collapsed = (text: string): string => text.replaceAll(/[\t\n\f\r ]+/g, ' ').replaceAll(/^ | $/g, '')

const expectedTags = (output: readonly Token[]): { name: string; attributes: [string, string][] }[] =>
  output.filter(([type]) => type === 'StartTag').map(([, name, attributes]) => ({ name: name as string, attributes: Object.entries(attributes as Record<string, string>) }))

/** The input with all start tags named `a`, and the n-th attribute of each named `href`, its duplicates too. */
function renamed(input: string, tags: readonly StartTag[], nth: number): string {
  let text = input
  for (const tag of tags.toReversed()) {
    const attribute = tag.attributes[nth]
    const from = tag.start + 1 + tag.name.length
    let rest = text.slice(from, tag.end)
    if (attribute !== undefined) {
      const literal = attribute.name.replaceAll(/[^\w]/g, String.raw`\$&`)
      const again = /^[\w-]+$/.test(attribute.name) ? rest.replaceAll(new RegExp(String.raw`([\s"'/])${literal}(?=[\s=/>])`, 'gi'), '$1href') : rest
      const at = attribute.start - from
      rest = again === rest ? `${rest.slice(0, at)}href${rest.slice(at + attribute.name.length)}` : again
    }
    text = `${text.slice(0, tag.start)}<a${rest}${text.slice(tag.end)}`
  }
  return text
}

function tagVariants({ input, output }: TokenizerTest, skip: (reason: Reason) => void): Derived[] {
  const expected = expectedTags(output)
  const tags = startTagsOf(input)
  const width = Math.max(1, ...tags.map(({ attributes }) => attributes.length))
  return Array.from({ length: width }, (_, nth): Derived[] => {
    const text = renamed(input, tags, nth)
    // parse5 keeps the order of attributes, which an object does not (names that are numbers come first).
    const names = tags.map(({ attributes }) => attributes[nth]?.name)
    const hrefs = expected.flatMap(({ attributes }, index) => attributes.filter(([name]) => name === names[index] || name === 'href').map(([, value]) => value).slice(0, 1))
    const now = startTagsOf(text)
    const isSame = now.length === expected.length && now.every(({ name, attributes }, index) =>
      name === 'a' && attributes.length === expected[index]!.attributes.length && attributes.every(({ name, value }, at) =>
        at === nth ? name === 'href' : name !== 'href' && value === tags[index]!.attributes[at]!.value))
    if (!isSame) skip('renamed')
    return isSame ? [{ kind: 'tags', text, hrefs }] : []
  }).flat()
}

function textVariants({ input, output }: TokenizerTest, skip: (reason: Reason) => void): Derived[] {
  if (input.includes('\0')) return skip('nul'), []
  if (input.includes('</')) return skip('endTag'), []
  const text = output.map(([, characters]) => characters).join('')
  // A title is ended by its end tag, where a reference ends as it does at the end of the input.
  const asTitle: Derived = { kind: 'text', text: `<title>.${input}</title><a href=after>`, title: collapsed(`.${text}`), hrefs: ['after'] }
  if (!/^&#?\w+;?$/.test(input) || text.length > 2) return [asTitle]
  return [asTitle, ...['"', '\'', ''].map((quote): Derived => ({ kind: 'attribute', text: `<a href=${quote}${input}${quote}>`, hrefs: [text.replaceAll('\r', '\n')] }))]
}

/** Whether html5lib expects a comment, a doctype or a tag to be open where the input ends. */
function isLeftOpen({ input, output, errors = [] }: TokenizerTest): boolean {
  const last = output.at(-1)?.[0]
  return /^eof-in-(?:comment|doctype|tag)$/.test(errors.at(-1)?.code ?? '') || input.endsWith('</') || ((last === 'Comment' || last === 'DOCTYPE') && !input.endsWith('>'))
}

function dataVariants(test: TokenizerTest, skip: (reason: Reason) => void): Derived[] {
  const { input, output } = test
  if (expectedTags(output).length > 0) return tagVariants(test, skip)
  if (input === '') return skip('nothing'), []
  if (output.length > 0 && output.every(([type]) => type === 'Character')) return textVariants(test, skip)
  const hidden: Derived = { kind: 'hidden', text: input.replaceAll(/<[a-z][a-z0-9]*/gi, '<a href=hidden '), hrefs: [] }
  const ending: Derived = { kind: 'ending', text: `${input}<area href=after>`, hrefs: isLeftOpen(test) ? [] : ['after'] }
  // An open tag named `a` would take the address after it for its own.
  return [...(/<a[\s/]/i.test(input) ? [] : [ending]), ...(hidden.text === input ? [] : [hidden])]
}

const rawElements: Readonly<Record<string, readonly string[]>> = {
  'RCDATA state': ['title', 'textarea'], 'RAWTEXT state': ['xmp', 'style', 'iframe', 'noembed', 'noframes'], 'Script data state': ['script'],
  'PLAINTEXT state': ['plaintext'],
}

function rawVariants({ input, output, lastStartTag }: TokenizerTest, state: string, skip: (reason: Reason) => void): Derived[] {
  const after = '<a href=after>'
  if (state === 'CDATA section state') {
    const end = input.indexOf(']]>')
    if (end !== -1 && /[<&\r]/.test(input.slice(end))) return skip('section'), []
    const hrefs = end === -1 ? ['before', 'last'] : ['before', 'after', 'last']
    return [{ kind: 'raw', text: `<a href=before></a><svg><![CDATA[${input}</svg>${after}]]></svg><a href=last>`, hrefs }]
  }
  const isEnded = state !== 'PLAINTEXT state' && output.some(([type, name]) => type === 'EndTag' && name === lastStartTag)
  return rawElements[state]!.map((element) => {
    const text = lastStartTag === undefined ? input : input.replaceAll(new RegExp(lastStartTag, 'gi'), (name) => name === name.toUpperCase() ? element.toUpperCase() : element)
    return { kind: 'raw', text: `<a href=before></a><${element}>${text}${after}`, hrefs: isEnded ? ['before', 'after'] : ['before'] }
  })
}

function variantsOf(test: TokenizerTest, skip: (reason: Reason) => void): Derived[] {
  if (test.file === 'xmlViolation.test') return skip('xml'), []
  if (!test.input.isWellFormed()) return skip('surrogate'), []
  return test.initialStates.flatMap((state) => state === 'Data state' ? dataVariants(test, skip) : rawVariants(test, state, skip))
}

function isFound({ text, hrefs, title }: Derived, reader: Reader): { readonly ok: boolean; readonly facts: PlainFacts } {
  const facts = reader(Buffer.from(text), asUtf8)
  const found = facts.links.map(({ href }) => href)
  const ok = (hrefs === undefined || JSON.stringify(found) === JSON.stringify(hrefs)) && (title === undefined || facts.title === title)
  return { ok, facts }
}

/** The inputs as they stand, with links after them: those show in which state the input ends. */
function plainTexts(test: TokenizerTest): string[] {
  if (!test.input.isWellFormed()) return []
  return test.initialStates.flatMap((state) => {
    const before = state === 'CDATA section state' ? ['<svg><![CDATA['] : (rawElements[state]?.map((element) => `<${element}>`) ?? [''])
    return before.map((start) => `${start}${test.input}<area href=probe>`)
  })
}

describe.skipIf(lacksCorpus('html5lib-tests/tokenizer'))('html5lib tokenizer', () => {
  const tests = tokenizerTests()
  const reasons: Partial<Record<Reason, number>> = {}
  const derived = tests.flatMap((test) => variantsOf(test, (reason) => { reasons[reason] = (reasons[reason] ?? 0) + 1 })
    .map((variant) => ({ name: `${test.file}: ${test.description}`, ...variant })))
  const failuresOf = (reader: Reader): object[] => derived.flatMap((one) => {
    const { ok, facts } = isFound(one, reader)
    return ok ? [] : [{ ...one, found: facts.links.map(({ href }) => href), foundTitle: facts.title }]
  })

  it('this many variants are derived, and this many tests are left out', () => {
    expect(tests).toHaveLength(6_810)
    const counts: Partial<Record<Derived['kind'], number>> = {}
    for (const { kind } of derived) counts[kind] = (counts[kind] ?? 0) + 1
    expect(counts).toEqual({ attribute: 7_965, text: 5_060, ending: 1_177, raw: 699, tags: 497, hidden: 12 })
    expect(reasons).toEqual({ surrogate: 4, xml: 4, nul: 3, endTag: 3, nothing: 1, section: 1 })
  })

  it('every variant gives what html5lib expects', () => {
    const failures = failuresOf(read)
    expect({ count: failures.length, shown: failures.slice(0, Number(process.env['SHOW'] ?? 5)) }).toEqual({ count: 0, shown: [] })
  })

  it('every input, and every variant, gives the facts that parse5 finds', () => {
    const texts = [...new Set([...tests.flatMap(plainTexts), ...derived.map(({ text }) => text)])]
    const differences = texts.flatMap((text) => {
      const difference = differenceOf(read, text)
      return difference === undefined ? [] : [{ text, difference }]
    })
    expect({ count: differences.length, shown: differences.slice(0, Number(process.env['SHOW'] ?? 5)) }).toEqual({ count: 0, shown: [] })
  })

  it('a reader by pattern fails on variants of each kind, so each proves something', () => {
    const kinds = new Set(failuresOf(readByPattern).map((one) => (one as Derived).kind))
    expect([...kinds].sort()).toEqual(['attribute', 'ending', 'hidden', 'raw', 'tags', 'text'])
  })
})
