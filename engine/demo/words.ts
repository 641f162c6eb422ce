/**
 * The vocabulary of the demonstration web. Words are drawn by Zipf's law, as in real text, so that compressors find
 * in the made pages about what they find on the real web. Pure functions, any thread.
 */
import { below, dice, pick, type Dice } from './random.ts'

const common = ('the of and to in a is that for it was on are as with his they at be this from have or by one had '
  + 'not but what all were when we there can an your which their said if do will each about how up out them then she '
  + 'many some so these would other into has more her two like him see time could no make than first been its who now '
  + 'people my made over did down only way find use may water long little very after words called just where most know '
  + 'city council market report season minister company government project region budget team station river school '
  + 'hospital railway election winter summer harvest museum theatre festival energy price bank traffic bridge library '
  + 'research university climate forest island harbour airport village parliament court police union workers engineers '
  + 'caf\u00e9 fa\u00e7ade Z\u00fcrich M\u00e1laga na\u00efve D\u00fcsseldorf Krak\u00f3w').split(' ')

const syllables = 'ba con der el fi gra hol in ja ker lo men na or per qua ri son ta um ver wi xen yo zel tion ing est ard ous'.split(' ')

const vocabularySize = 1_500
const drawsSize = 4_096

/** Words repeated by how common they are, so that a draw is one look-up. */
const draws: readonly string[] = makeDraws()

function makeDraws(): string[] {
  const roll = dice(0x51a1ce)
  const vocabulary = [...common]
  while (vocabulary.length < vocabularySize) {
    let made = ''
    for (let part = 2 + below(roll, 2); part > 0; part--) made += pick(roll, syllables)
    vocabulary.push(made)
  }
  // The rank of a Zipf law with exponent one is exponential in an even share.
  return Array.from({ length: drawsSize }, (_, index) => vocabulary[Math.floor(vocabularySize ** (index / drawsSize)) - 1]!)
}

export function word(roll: Dice): string {
  return draws[below(roll, drawsSize)]!
}

export function words(roll: Dice, count: number): string {
  let text = word(roll)
  for (let index = 1; index < count; index++) text += ' ' + word(roll)
  return text
}

export function sentence(roll: Dice): string {
  const text = words(roll, 6 + below(roll, 14))
  const comma = roll() < 0.3 ? ', ' + words(roll, 3 + below(roll, 5)) : ''
  const end = roll() < 0.06 ? ' &ndash; 5&nbsp;&euro; &amp; more.' : roll() < 0.1 ? '?' : '.'
  return text[0]!.toUpperCase() + text.slice(1) + comma + end
}

/** Words for the path of a page; some carry a percent-encoded letter. */
const slugWords = ('city council plans bridge over river opens new library for students report on winter prices market '
  + 'grows slowly team wins final after long season minister visits railway works harbour museum shows early maps '
  + 'village votes energy storage test island ferry returns school garden prize caf%C3%A9 culture guide weekend '
  + 'recipes review interview history letters science update archive gallery notes').split(' ')

export function slug(hash: number): string {
  const first = slugWords[hash % slugWords.length]!
  const second = slugWords[(hash >>> 7) % slugWords.length]!
  const third = slugWords[(hash >>> 14) % slugWords.length]!
  return (hash >>> 21) % 3 === 0 ? `${first}-${second}` : `${first}-${second}-${third}`
}
