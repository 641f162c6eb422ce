/** Runs as lines of text while they come, and as a table in Markdown at the end. Pure functions. */
import type { RunResult } from './run.ts'
import type { Scenario } from './scenario.ts'
import { beforeOf, blockedShares, faultSpan, othersShare, percent, rate, recoveryS } from './verdicts.ts'

/** Both runs of a scenario; undefined: the run's process died, or there is no contrast. */
export interface Judged {
  readonly scenario: Scenario
  readonly result: RunResult | undefined
  readonly contrast: RunResult | undefined
}

/** Verdicts whose figures are worth a place in the table though they were kept. */
const telling = /^(?:outcomes|limit|refused|retries|deaths|in flight|small hosts|large host)/

interface Figures {
  readonly rates: string
  readonly others: string
  readonly recovery: string
  readonly blockedOn: string
  readonly memory: string
  readonly told: string
}

function figuresOf({ claims }: Scenario, { evidence, verdicts }: RunResult): Figures {
  const { samples, steps } = evidence
  const seconds = claims.recovery === undefined ? undefined : recoveryS(evidence, claims.recovery.of)
  return {
    rates: `${rate(samples, 'all', beforeOf(steps)).toFixed(0)} to ${rate(samples, 'all', faultSpan(steps)).toFixed(0)} pages/s`,
    others: claims.othersShareMin === undefined ? '' : percent(othersShare(evidence)),
    recovery: seconds === undefined ? '' : `${seconds.toFixed(1)} s`,
    blockedOn: blockedShares(evidence).slice(0, 2).map(([cause, share]) => `${cause} ${percent(share)}`).join(', '),
    memory: verdicts.find(({ name }) => name === 'memory')!.text,
    told: verdicts.filter(({ name, isKept }) => isKept && telling.test(name)).map(({ text }) => text).join('; '),
  }
}

function brokenOf({ verdicts }: RunResult): readonly string[] {
  return verdicts.filter(({ isKept }) => !isKept).map(({ name, text }) => `${name}: ${text}`)
}

export function linesOf(scenario: Scenario, isContrast: boolean, result: RunResult | undefined): readonly string[] {
  const title = isContrast ? `  with ${scenario.contrast!.label}` : `${scenario.name}: ${scenario.story}`
  if (result === undefined) return [`${title}: WRONG, the run's process died`]
  const [broken, { rates, others, recovery, blockedOn, memory, told }] = [brokenOf(result), figuresOf(scenario, result)]
  const figures = [rates, others && `others ${others}`, recovery && `back after ${recovery}`, blockedOn, memory, told].filter((text) => text !== '')
  return [`${title}: ${broken.length === 0 ? 'ok' : 'WRONG'}; ${figures.join('; ')}`, ...broken.map((text) => `    ${isContrast ? 'not kept' : 'WRONG'}: ${text}`)]
}

export function tableOf(judged: readonly Judged[]): string {
  const rows = judged.map(({ scenario, result, contrast }) => {
    if (result === undefined) return [scenario.story, 'its process died', '', '', '', '', '', '']
    const { rates, others, recovery, blockedOn, memory, told } = figuresOf(scenario, result)
    const broken = brokenOf(result)
    const without = contrast === undefined ? '' : `${scenario.contrast!.label}: ${brokenOf(contrast).map((text) => text.replace(/^[^:]*: /, '')).join('; ') || 'no claim broken'}`
    return [scenario.story, rates, others, recovery, blockedOn, memory, [broken.length === 0 ? 'all kept' : broken.join('; '), told].filter((text) => text !== '').join('; '), without]
  })
  const head = ['the bad afternoon', 'throughput', 'others keep', 'back after', 'blocked on', 'memory', 'claims', 'without the control']
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
