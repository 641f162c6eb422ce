/**
 * The priority of a URL: 0 is first, `priorityMax` last. Seeds have 0, links their depth, unless the user has a function
 * for it. Leaf module.
 */
import { SluiceError } from './errors.ts'
import { limits } from './limits.ts'

/** What is known of a URL that is about to enter the queue. */
export interface LinkFacts {
  readonly url: string
  readonly host: string
  readonly depth: number
  /** The priority that it has without the function: as it was added, or its depth; of a redirect's target that of the URL that led there. */
  readonly priority: number
  /** The page that it was found in. */
  readonly referrer?: string
  /** It was given by `add`. */
  readonly isSeed: boolean
}

/**
 * Answers the priority, 0 first, 255 last; rounded, and taken as the nearest of these. Called once for each URL that is
 * new, on the main thread while a commit is planned, and once more if that commit has to be tried again. It should be
 * quick and have no effects. What it throws, and an answer that is no number, ends the run as `bad_option`; nothing is lost.
 */
export type PriorityFunction = (link: LinkFacts) => number

/** The nearest priority. */
export function nearestPriority(value: number): number {
  return Math.min(limits.priorityMax, Math.max(0, Math.round(value)))
}

/** Throws `bad_option`. */
export function askPriority(priorityOf: PriorityFunction, link: LinkFacts): number {
  let answer: unknown
  try {
    answer = priorityOf(link)
  } catch (cause) {
    throw new SluiceError('bad_option', `priority: the function threw on ${link.url}: ${String(cause)}`, { cause })
  }
  if (typeof answer === 'number' && !Number.isNaN(answer)) return nearestPriority(answer)
  throw new SluiceError('bad_option', `priority: expected a number for ${link.url}, given ${typeof answer} ${String(answer)}`)
}
