/**
 * The bad afternoons at full size, with real sockets: each in a process of its own, and again without the control in
 * question where an option switches it off. Prints a table with every verdict; exits with 1 when one is not kept. The
 * runs without a control are there to be wrong, and count for nothing.
 *
 *     npm run bench:pressure -- [--only NAME]... [--seed 1] [--scale 1] [--no-contrast] [--json FILE] [--svg DIR]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { frugalMalloc } from '../engine/cli/frugal-malloc.ts'
import { chartOf } from './pressure/chart.ts'
import { linesOf, tableOf, type Judged } from './pressure/print.ts'
import type { RunOrder, RunResult } from './pressure/run.ts'
import type { Scenario } from './pressure/scenario.ts'
import { scenarios } from './pressure/scenarios.ts'

const { values } = parseArgs({ options: {
  only: { type: 'string', multiple: true }, seed: { type: 'string', default: '1' }, scale: { type: 'string', default: '1' },
  'no-contrast': { type: 'boolean', default: false }, json: { type: 'string' }, svg: { type: 'string' },
} })
const unknown = values.only?.find((name) => !scenarios.some((scenario) => scenario.name === name))
if (unknown !== undefined) throw new Error(`--only ${unknown}: expected one of ${scenarios.map(({ name }) => name).join(', ')}`)

/** In a process of its own, so that memory is counted from nothing. */
async function runApart(name: string, order: RunOrder): Promise<RunResult | undefined> {
  const hasBudget = scenarios.find((scenario) => scenario.name === name)?.options?.memoryBytes !== undefined
  const child = fork(fileURLToPath(new URL('./pressure/run-entry.js', import.meta.url)), [JSON.stringify({ name, ...order })], { execArgv: [], ...(hasBudget && { env: { ...frugalMalloc, ...process.env } }) })
  const message = once(child, 'message').then(([result]) => result as RunResult)
  const [result] = await Promise.all([Promise.race([message, once(child, 'exit').then(() => undefined)]), once(child, 'exit')])
  return result
}

async function judge(scenario: Scenario, isContrast: boolean): Promise<RunResult | undefined> {
  const result = await runApart(scenario.name, { seed: Number(values.seed), scale: Number(values.scale), isContrast })
  for (const line of linesOf(scenario, isContrast, result)) console.log(line)
  if (result !== undefined && values.svg !== undefined) {
    mkdirSync(values.svg, { recursive: true })
    writeFileSync(join(values.svg, `${scenario.name}${isContrast ? '-contrast' : ''}.svg`), chartOf(scenario, isContrast, result.evidence))
  }
  return result
}

const judged: Judged[] = []
for (const scenario of scenarios) {
  if (values.only !== undefined && !values.only.includes(scenario.name)) continue
  const result = await judge(scenario, false)
  const contrast = scenario.contrast === undefined || values['no-contrast'] ? undefined : await judge(scenario, true)
  judged.push({ scenario, result, contrast })
}
const wrong = judged.filter(({ result }) => result?.verdicts.every(({ isKept }) => isKept) !== true).length
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(judged.map(({ scenario: { name }, ...results }) => ({ name, seed: Number(values.seed), ...results }))))
console.log(`\n${tableOf(judged)}\n\n${judged.length} scenarios, seed ${values.seed}: ${wrong} wrong`)
process.exitCode = wrong === 0 ? 0 : 1
