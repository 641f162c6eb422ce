/**
 * The encoding of a text that declares none and is no valid UTF-8: UTF-8 all the same where next to nothing is broken, an
 * East Asian encoding where its pairs show it, else windows-1252. Pure; runs in a parse worker, for such texts alone, over
 * 16 KiB from the first byte beyond ASCII.
 *
 * Pairs are strong evidence: in any other text an odd number of bytes beyond ASCII before a space breaks a pair. The shares
 * were found on the pages of the corpus, turned into legacy encodings: of 60 texts in Chinese, Japanese and Korean 57 are
 * recognised, and none of 323 in the encodings of one byte, nor of the corpus's 31 legacy pages, is taken for one of them.
 * Encodings of one byte cannot be told apart without tables of letters for each language, so they are left alone.
 */
const SAMPLE_BYTES = 16_384
/** Fewer characters than this prove nothing. */
const CHARACTERS_MIN = 12

/** At most one in fifty is broken, and there are enough of them. */
function isSound(characters: number, broken: number): boolean {
  return characters >= CHARACTERS_MIN && broken * 50 <= characters
}

function continuationBytes(lead: number): number {
  return lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3
}

function isMostlyUtf8(sample: Uint8Array): boolean {
  let [characters, broken] = [0, 0]
  for (let at = 0; at < sample.length; at += 1) {
    if (sample[at]! < 0x80) continue
    const end = at + continuationBytes(sample[at]!)
    const start = at
    while (at < end && (sample[at + 1]! & 0xc0) === 0x80) at += 1
    if (at === end && at > start) characters += 1
    else broken += 1
  }
  return isSound(characters, broken)
}

function isShiftJis(sample: Uint8Array): boolean {
  let [pairs, broken, kana] = [0, 0, 0]
  for (let at = 0; at + 1 < sample.length; at += 1) {
    const byte = sample[at]!
    // A half-width kana is one byte, and says nothing.
    if (byte < 0x80 || (byte >= 0xa1 && byte <= 0xdf)) continue
    at += 1
    const next = sample[at]!
    if (byte === 0x80 || byte === 0xa0 || byte > 0xfc || next < 0x40 || next === 0x7f || next > 0xfc) broken += 1
    else pairs += 1
    if ((byte === 0x82 && next >= 0x9f && next <= 0xf1) || (byte === 0x83 && next >= 0x40 && next <= 0x96)) kana += 1
  }
  return isSound(pairs, broken) && kana * 5 > pairs
}

/** EUC-JP by its rows of kana, EUC-KR by those of hangul, GBK by those of the commoner characters. */
function eucOf(sample: Uint8Array): string | undefined {
  let [pairs, broken, kana, hangul, common] = [0, 0, 0, 0, 0]
  for (let at = 0; at + 1 < sample.length; at += 1) {
    const row = sample[at]!
    if (row < 0x80) continue
    at += 1
    const next = sample[at]!
    // A half-width kana of EUC-JP says nothing.
    if (row === 0x8e && next >= 0xa1) continue
    if (row < 0xa1 || row === 0xff || next < 0xa1 || next === 0xff) broken += 1
    // Rows 0xA1 to 0xA3 hold signs in all three.
    else if (row > 0xa3) pairs += 1
    if (row === 0xa4 || row === 0xa5) kana += 1
    if (row >= 0xb0 && row <= 0xc8) hangul += 1
    if (row >= 0xb0 && row <= 0xd7) common += 1
  }
  if (!isSound(pairs, broken)) return undefined
  if (kana * 5 > pairs) return 'euc-jp'
  if (hangul * 100 > pairs * 88) return 'euc-kr'
  return common * 100 > pairs * 75 ? 'gbk' : undefined
}

/** Big5 by the rows of the commoner characters. */
function isBig5(sample: Uint8Array): boolean {
  let [pairs, broken, common] = [0, 0, 0]
  for (let at = 0; at + 1 < sample.length; at += 1) {
    const row = sample[at]!
    if (row < 0x80) continue
    at += 1
    const next = sample[at]!
    if (row < 0xa1 || row > 0xf9 || next < 0x40 || (next > 0x7e && next < 0xa1) || next === 0xff) broken += 1
    else pairs += 1
    if (row >= 0xa4 && row <= 0xc6) common += 1
  }
  return isSound(pairs, broken) && common * 100 > pairs * 70
}

export function legacyGuess(bytes: Uint8Array): string {
  let start = 0
  while (start < bytes.length && bytes[start]! < 0x80) start += 1
  const sample = bytes.subarray(start, start + SAMPLE_BYTES)
  if (isMostlyUtf8(sample)) return 'utf-8'
  if (isShiftJis(sample)) return 'shift_jis'
  return eucOf(sample) ?? (isBig5(sample) ? 'big5' : 'windows-1252')
}

/** Whether text of ASCII bytes switches to JIS X 0208 and back again, as only ISO-2022-JP does. */
export function isIso2022Jp(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 4 * SAMPLE_BYTES))
  const first = text.indexOf(0x1b)
  if (first === -1) return false
  const start = Math.max(text.indexOf('\x1b$B', first, 'latin1'), text.indexOf('\x1b$@', first, 'latin1'))
  return start !== -1 && (text.includes('\x1b(B', start, 'latin1') || text.includes('\x1b(J', start, 'latin1'))
}
