/** The README's tables are printed from the code. `README_UPDATE=1 npx vitest run … readme` writes them anew. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { crawlFlags } from '../../engine/cli/flags.ts'
import { failureTable, type FailureRule } from '../../engine/core/errors.ts'
import { crawlOptions, runOptions } from '../../engine/core/options.ts'
import { refusalMeanings } from '../../engine/core/types.ts'

const path = new URL('../../README.md', import.meta.url)

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
}

function optionsTable(): string {
  const names = new Map(Object.entries({ ...crawlOptions, ...runOptions }).map(([name, spec]) => [spec.flag as string, name]))
  const rows = crawlFlags.map(({ flags, help, isRepeatable }) => {
    const flag = flags.split(' ')[0]!
    const text = isRepeatable && !/repeatable/.test(help) ? `${help}; repeatable` : help
    return `| \`${flags.replaceAll('|', '\\|')}\` | ${names.has(flag) ? `\`${names.get(flag)}\`` : ''} | ${cell(text)} |`
  })
  return ['| flag | in code | meaning |', '|---|---|---|', ...rows].join('\n')
}

function failuresTable(): string {
  const again: Record<FailureRule['retry'], string> = { never: 'no', url: 'yes', host: 'the host rests first', both: 'yes, and the host rests first', park: 'no, the host is parked', gateway: 'yes, the gateway slows down' }
  const rows = Object.entries(failureTable).map(([code, rule]: [string, FailureRule]) => `| \`${code}\` | ${again[rule.retry]} | ${cell(rule.meaning)} |`)
  return ['| code | tried again | meaning |', '|---|---|---|', ...rows].join('\n')
}

function refusalsTable(): string {
  const rows = Object.entries(refusalMeanings).map(([reason, meaning]) => `| \`${reason}\` | ${cell(meaning)} |`)
  return ['| reason | the link is |', '|---|---|', ...rows].join('\n')
}

it.each([['options', optionsTable], ['failures', failuresTable], ['refusals', refusalsTable]] as const)('the README has the table of %s that the code has', (name, table) => {
  const text = readFileSync(path, 'utf8')
  const section = new RegExp(`(<!-- ${name} -->\\n)[^]*?(<!-- /${name} -->)`)
  expect(text).toMatch(section)
  const wanted = text.replace(section, (_, open: string, close: string) => `${open}${table()}\n${close}`)
  if (process.env['README_UPDATE'] !== undefined) writeFileSync(path, wanted)
  else expect(text).toBe(wanted)
})
