/**
 * "Prescan a byte stream to determine its encoding" of the HTML Standard, its steps written down one after another with no
 * thought for speed: what the prescan of the parse workers is compared with. Running out of bytes is an exception.
 */
import { encodingOfLabel } from '../../threads/html/encodings.ts'

class OutOfBytes extends Error {}

const space = '\t\n\f\r '

/** The encoding, or undefined where the standard's steps return failure. */
export function prescanModel(body: Uint8Array): string | undefined {
  const text = Buffer.from(body.subarray(0, 1_024)).toString('latin1')
  try {
    return prescan(text)
  } catch (error) {
    if (error instanceof OutOfBytes) return xmlEncoding(text)
    throw error
  }
}

function byteAt(text: string, at: number): string {
  if (at >= text.length) throw new OutOfBytes()
  return text[at]!
}

function first(text: string, from: number, isWanted: (byte: string, at: number) => boolean): number {
  let at = from
  while (!isWanted(byteAt(text, at), at)) at += 1
  return at
}

function fixed(encoding: string): string {
  if (encoding === 'utf-16le' || encoding === 'utf-16be') return 'utf-8'
  return encoding
}

function prescan(text: string): string | undefined {
  if (text.startsWith('<\0?\0x\0')) return 'utf-16le'
  if (text.startsWith('\0<\0?\0x')) return 'utf-16be'
  for (let position = 0; ; position += 1) {
    byteAt(text, position)
    const rest = text.slice(position)
    if (rest.startsWith('<!--')) {
      position = first(text, position + 4, (byte, at) => byte === '>' && text.slice(at - 2, at) === '--')
    } else if (/^<meta[\t\n\f\r /]/i.test(rest)) {
      const [encoding, end] = meta(text, position + 5)
      if (encoding !== undefined) return encoding
      position = end
    } else if (/^<\/?[a-z]/i.test(rest)) {
      position = first(text, position, (byte) => space.includes(byte) || byte === '>')
      for (let found = attribute(text, position); ; found = attribute(text, position)) {
        position = found.end
        if (found.name === undefined) break
      }
    } else if (/^<[!/?]/.test(rest)) {
      position = first(text, position, (byte) => byte === '>')
    }
  }
}

function meta(text: string, from: number): [string | undefined, number] {
  const names: string[] = []
  let gotPragma = false
  let needPragma: boolean | undefined
  let charset: string | null | undefined
  let position = from
  for (; ;) {
    const { name, value, end } = attribute(text, position)
    position = end
    if (name === undefined) break
    if (names.includes(name)) continue
    names.push(name)
    if (name === 'http-equiv' && value === 'content-type') gotPragma = true
    if (name === 'content') {
      const encoding = extract(value)
      if (encoding !== undefined && charset === undefined) [charset, needPragma] = [encoding, true]
    }
    if (name === 'charset') [charset, needPragma] = [encodingOfLabel(value) ?? null, false]
  }
  if (needPragma === undefined || (needPragma && !gotPragma) || charset === null || charset === undefined) return [undefined, position]
  if (charset === 'x-user-defined') return ['windows-1252', position]
  return [fixed(charset), position]
}

function attribute(text: string, from: number): { name?: string; value: string; end: number } {
  let at = first(text, from, (byte) => !space.includes(byte) && byte !== '/')
  if (text[at] === '>') return { value: '', end: at }
  let name = ''
  for (; ; at += 1) {
    const byte = byteAt(text, at)
    if (byte === '=' && name !== '') break
    if (space.includes(byte)) {
      at = first(text, at, (other) => !space.includes(other))
      if (text[at] !== '=') return { name, value: '', end: at }
      break
    }
    if (byte === '/' || byte === '>') return { name, value: '', end: at }
    name += byte.toLowerCase()
  }
  at = first(text, at + 1, (byte) => !space.includes(byte))
  const quote = text[at]!
  let value = ''
  if (quote === '"' || quote === '\'') {
    for (at += 1; byteAt(text, at) !== quote; at += 1) value += text[at]!.toLowerCase()
    return { name, value, end: at + 1 }
  }
  for (; byteAt(text, at) !== '>' && !space.includes(text[at]!); at += 1) value += text[at]!.toLowerCase()
  return { name, value, end: at }
}

function extract(content: string): string | undefined {
  for (let position = 0; ;) {
    const found = content.indexOf('charset', position)
    if (found === -1) return undefined
    position = found + 7
    while (position < content.length && space.includes(content[position]!)) position += 1
    if (content[position] !== '=') continue
    position += 1
    while (position < content.length && space.includes(content[position]!)) position += 1
    const match = /^(?:"([^"]*)"|'([^']*)'|([^"'\t\n\f\r ;][^\t\n\f\r ;]*))/.exec(content.slice(position))
    const label = match?.[1] ?? match?.[2] ?? match?.[3]
    return label === undefined ? undefined : encodingOfLabel(label)
  }
}

function xmlEncoding(text: string): string | undefined {
  const found = text.indexOf('encoding')
  if (!text.startsWith('<?xml') || found === -1 || found > text.indexOf('>')) return undefined
  // oxlint-disable-next-line no-control-regex
  const label = /^[\0- ]*=[\0- ]*(["'])(.*?)\1/s.exec(text.slice(found + 8))?.[2]
  // oxlint-disable-next-line no-control-regex
  const encoding = label === undefined || /[\0- ]/.test(label) ? undefined : encodingOfLabel(label)
  return encoding === undefined ? undefined : fixed(encoding)
}
