/**
 * What fills pages up to their size: blocks of HTML of four sizes, made once per seed and shared by all pages and webs
 * of a process. They hold no `<a href>`, so they are the same on every host. Main thread of the web's process.
 */
import { below, dice, mix, pick, type Dice } from './random.ts'
import { makePieces, type Piece } from './pieces.ts'
import { sentence, word, words } from './words.ts'

/** Sizes of blocks in bytes, largest first, each four times the next. */
const blockBytes = [64 * 1024, 16 * 1024, 4 * 1024, 1024] as const
const blockCounts = [16, 16, 24, 32] as const

export interface Filler {
  readonly blocks: ReadonlyMap<number, readonly Piece[]>
}

let last: { readonly seed: number, readonly filler: Promise<Filler> } | undefined

/** The blocks of a seed; making them takes about 0.2 s, so those of the last seed are kept. */
export function fillerOf(seed: number): Promise<Filler> {
  if (last?.seed !== seed) last = { seed, filler: makeFiller(seed) }
  return last.filler
}

async function makeFiller(seed: number): Promise<Filler> {
  const blocks = new Map<number, Piece[]>()
  for (const [index, bytes] of blockBytes.entries()) {
    const texts = Array.from({ length: blockCounts[index]! }, (_, number) => blockText(dice(mix(seed, bytes, number)), bytes))
    blocks.set(bytes, await makePieces(texts))
  }
  return { blocks }
}

/** Blocks of `bytes` bytes together, rounded down to the smallest block, chosen by `hash`. */
export function chooseBlocks(filler: Filler, bytes: number, hash: number): Piece[] {
  const chosen: Piece[] = []
  let rest = bytes
  for (const size of blockBytes) {
    const choices = filler.blocks.get(size)!
    for (; rest >= size; rest -= size) chosen.push(choices[mix(hash, chosen.length) % choices.length]!)
  }
  return chosen
}

/** Balanced markup of exactly `bytes` bytes: whole sections, then a comment to the byte. */
function blockText(roll: Dice, bytes: number): Buffer {
  let text = ''
  let length = 0
  for (let misses = 0; misses < 4;) {
    const part = section(roll)
    const partBytes = Buffer.byteLength(part)
    if (length + partBytes > bytes - 8) {
      misses++
      continue
    }
    text += part
    length += partBytes
  }
  const room = bytes - length - 8
  let note = ''
  while (note.length < room) note += words(roll, 6).replace(/[^a-z ]/g, 'e') + '\n'
  return Buffer.from(`${text}<!--${note.slice(0, room)}-->\n`)
}

/** Sites repeat themselves, and compressors live on it: two sentences in three come from a small stock. */
const stockSize = 96
const stock = makeStock()

function makeStock(): string[] {
  const roll = dice(0x570c)
  return Array.from({ length: stockSize }, () => sentence(roll))
}

function phrase(roll: Dice): string {
  return roll() < 0.33 ? sentence(roll) : stock[Math.floor(stockSize * roll() ** 2)]!
}

function phrases(roll: Dice, count: number): string {
  return Array.from({ length: count }, () => phrase(roll)).join(' ')
}

function section(roll: Dice): string {
  const kind = roll()
  if (kind < 0.34) return paragraphs(roll)
  if (kind < 0.62) return card(roll)
  if (kind < 0.74) return table(roll)
  if (kind < 0.86) return script(roll)
  if (kind < 0.92) return figure(roll)
  return style(roll)
}

function paragraphs(roll: Dice): string {
  let html = `<div class="article__body text-block text-block--${below(roll, 9)}" data-block-id="${below(roll, 1e6)}">\n<h3 class="text-block__title">${words(roll, 5)}</h3>\n`
  for (let count = 1 + below(roll, 3); count > 0; count--) html += `  <p class="text-block__paragraph">${phrases(roll, 2 + below(roll, 3))}</p>\n`
  return html + '</div>\n'
}

function card(roll: Dice): string {
  const id = below(roll, 1e6)
  return `<div class="grid__item grid__item--wide" data-tracking="teaser:${id}" data-position="${below(roll, 40)}">\n`
    + `  <div class="teaser teaser--${pick(roll, ['small', 'large', 'video'])}" role="article" aria-labelledby="teaser-${id}">\n`
    + `    <img class="teaser__image lazyload" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" data-src="/media/${id}/480x270.webp" width="480" height="270" alt="${words(roll, 4)}" loading="lazy">\n`
    + `    <div class="teaser__content"><span class="teaser__kicker">${word(roll)}</span>\n`
    + `      <h4 class="teaser__headline" id="teaser-${id}">${phrase(roll)}</h4>\n`
    + `      <p class="teaser__text">${phrase(roll)}</p>\n      <button type="button" class="button button--icon" disabled>&#9825; ${below(roll, 900)}</button>\n    </div>\n  </div>\n</div>\n`
}

function table(roll: Dice): string {
  let html = '<table class="data-table"><thead><tr><th>Name</th><th>Value</th><th>Change</th></tr></thead><tbody>\n'
  for (let rows = 3 + below(roll, 8); rows > 0; rows--) {
    html += `<tr><td class="data-table__name">${word(roll)}</td><td class="num">${below(roll, 1e5)}</td><td class="num ${pick(roll, ['up', 'down'])}">${below(roll, 1_000) / 10}&nbsp;%</td></tr>\n`
  }
  return html + '</tbody></table>\n'
}

/** Scripts hold what looks like markup and is none. */
function script(roll: Dice): string {
  const entries = Array.from({ length: 3 + below(roll, 6) }, () => `{"id":${below(roll, 1e6)},"title":"${words(roll, 3)}","tags":["${word(roll)}","${word(roll)}"],"premium":${roll() < 0.5}}`)
  return `<script>window.__state=window.__state||[];window.__state.push(${entries.join(',')});\n`
    + `if (1<2 && document.body) { document.title = document.title || "<b>${word(roll)}</b>"; }</script>\n`
}

function figure(roll: Dice): string {
  let path = ''
  for (let points = 12 + below(roll, 20); points > 0; points--) path += `L${below(roll, 9_000) / 10} ${below(roll, 9_000) / 10}`
  return `<figure class="chart"><svg viewBox="0 0 900 900" aria-hidden="true"><path d="M0 0${path}" fill="none" stroke="#${below(roll, 0xfff).toString(16).padStart(3, '0')}"/></svg><figcaption>${phrase(roll)}</figcaption></figure>\n`
}

function style(roll: Dice): string {
  let css = '<style>'
  for (let rules = 3 + below(roll, 5); rules > 0; rules--) css += `.c-${word(roll)}>.${pick(roll, ['item', 'label', 'icon'])}{margin:${below(roll, 40)}px auto;color:#${below(roll, 0xffffff).toString(16).padStart(6, '0')}}\n`
  return css + '</style>\n'
}
