/** The corpus as the tests of the scanner read it: pages, html5lib's tokenizer tests and its tree-construction cases. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { corpusPath } from './corpus.ts'

const root = corpusPath()

/** True where a part of the corpus is missing; says so once for the suite that then skips. */
export function lacksCorpus(part: string): boolean {
  if (existsSync(`${root}/${part}`)) return false
  console.log(`skipped: no corpus at ${root}/${part}`)
  return true
}

/** Nothing where it is missing: a suite that is skipped is gone through all the same, for the names of its tests. */
export function readJson<T>(name: string): T {
  if (!existsSync(`${root}/${name}`)) return [] as T
  return JSON.parse(readFileSync(`${root}/${name}`, 'utf8')) as T
}

export interface CorpusPage {
  readonly file: string
  readonly serve_content_type: string
  readonly raw_bytes: number
}

export const pageIndex = (): CorpusPage[] => readJson('pages/index.json')

export const pageBytes = (file: string): Uint8Array => brotliDecompressSync(readFileSync(`${root}/pages/${file}`))

export type Token = readonly [type: string, ...rest: unknown[]]

export interface TokenizerTest {
  readonly file: string
  readonly description: string
  readonly input: string
  readonly output: readonly Token[]
  readonly initialStates: readonly string[]
  readonly errors?: readonly { readonly code: string }[]
  readonly lastStartTag?: string
  readonly doubleEscaped?: boolean
}

const unescaped = (json: string): string => json.replaceAll(/\\u([0-9a-fA-F]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

function unescapeToken(token: Token): Token {
  return token.map((part) => {
    if (typeof part === 'string') return unescaped(part)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([name, value]) => [unescaped(name), unescaped(String(value))]))
  }) as unknown as Token
}

/** html5lib's tokenizer tests, their escapes undone. The four of xmlViolation.test are not among `tests` in their file. */
export function tokenizerTests(): TokenizerTest[] {
  const folder = 'html5lib-tests/tokenizer'
  if (!existsSync(`${root}/${folder}`)) return []
  return readdirSync(`${root}/${folder}`).filter((name) => name.endsWith('.test')).sort().flatMap((file) => {
    const { tests, xmlViolationTests } = readJson<{ tests?: TokenizerTest[]; xmlViolationTests?: TokenizerTest[] }>(`${folder}/${file}`)
    return (tests ?? xmlViolationTests ?? []).map((test) => ({
      ...test, file, initialStates: test.initialStates ?? ['Data state'],
      ...(test.doubleEscaped && { input: unescaped(test.input), output: test.output.map(unescapeToken) }),
    }))
  })
}

export interface TreeCase {
  /** File and number in it, from 1. */
  readonly name: string
  readonly data: string
  /** The context element of a fragment, as html5lib writes it: `td`, `svg desc`. */
  readonly context?: string
  readonly scripting?: 'on' | 'off'
  /** Lines of the expected dump, without the leading bar. */
  readonly document: readonly string[]
}

function treeCasesOf(file: string, text: string): TreeCase[] {
  return `\n${text}`.split('\n#data\n').slice(1).map((part, index) => {
    const sections = new Map<string, string[]>([['data', []]])
    let current = sections.get('data')!
    for (const line of part.split('\n')) {
      const heading = /^#(errors|new-errors|document-fragment|script-on|script-off|document)$/.exec(line)?.[1]
      // The data may hold such a line too, but none of the cases does.
      if (heading === undefined) current.push(line)
      else sections.set(heading, current = [])
    }
    const context = sections.get('document-fragment')?.[0]
    return {
      name: `${file}:${index + 1}`, data: sections.get('data')!.join('\n'), document: sections.get('document')!.map((line) => line.replace(/^\| /, '')),
      ...(context !== undefined && { context }),
      ...(sections.has('script-on') && { scripting: 'on' as const }), ...(sections.has('script-off') && { scripting: 'off' as const }),
    }
  })
}

/** html5lib's tree-construction cases, those of the folder `scripted` last. */
export function treeCases(): TreeCase[] {
  const folder = `${root}/html5lib-tests/tree-construction`
  if (!existsSync(folder)) return []
  const files = [...readdirSync(folder).sort(), ...readdirSync(`${folder}/scripted`).sort().map((name) => `scripted/${name}`)]
  return files.filter((name) => name.endsWith('.dat')).flatMap((name) => treeCasesOf(name, readFileSync(`${folder}/${name}`, 'utf8')))
}
