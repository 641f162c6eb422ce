/** A run as lines of text: a row of the table, and a line for each claim that was not kept. Pure functions. */
import type { RunResult } from './run.ts'
import type { Scenario } from './scenario.ts'
import { beforeOf, blockedShares, faultSpan, othersShare, percent, rate, recoveryS } from './verdicts.ts'

export function linesOf({ name, story, claims, contrast }: Scenario, isContrast: boolean, result: RunResult | undefined): readonly string[] {
  const title = isContrast ? `  with ${contrast!.label}` : `${name}: ${story}`
  if (result === undefined) return [`${title}: WRONG, the run's process died`]
  const { evidence, verdicts } = result
  const { samples, steps } = evidence
  const broken = verdicts.filter(({ isKept }) => !isKept)
  const [before, during] = [rate(samples, 'all', beforeOf(steps)), rate(samples, 'all', faultSpan(steps))]
  const seconds = claims.recovery === undefined ? undefined : recoveryS(evidence, claims.recovery.of)
  const figures = [
    `${before.toFixed(0)} pages/s before, ${during.toFixed(0)} during`,
    ...(claims.othersShareMin === undefined ? [] : [`others ${percent(othersShare(evidence))}`]),
    ...(seconds === undefined ? [] : [`back after ${seconds.toFixed(1)} s`]),
    blockedShares(evidence).slice(0, 2).map(([cause, share]) => `${cause} ${percent(share)}`).join(', '),
    ...verdicts.filter(({ name, isKept }) => isKept && /^(?:memory|limit|refused|retries|failed|deaths)/.test(name)).map(({ text }) => text),
  ]
  return [
    `${title}: ${broken.length === 0 ? 'ok' : 'WRONG'}; ${figures.join('; ')}`,
    ...broken.map(({ name, text }) => `    ${isContrast ? 'not kept' : 'WRONG'}: ${name}: ${text}`),
  ]
}
