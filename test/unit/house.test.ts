/** What lint cannot say of the house. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
const sources = files.filter((file) => /^(engine|threads|storage|bench)\/.*\.ts$/.test(file))
const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { dependencies: Record<string, string> }

/** Files that import a package, other than for its types alone. */
function importersOf(name: string): string[] {
  const module = `(['"])${name}(?:/[^'"]*)?`
  const statement = new RegExp(`^(?:import|export) (?!type )[^;]*?from ${module}\\1|^import ${module}\\2|(?:import|require|resolve|createRequire\\(import\\.meta\\.url\\))\\(${module}\\3`, 'm')
  return sources.filter((file) => statement.test(readFileSync(`${root}/${file}`, 'utf8')))
}

it.each(Object.keys(dependencies))('%s is imported by one file, which is where it would be replaced', (name) => {
  expect(importersOf(name)).toHaveLength(1)
})

it('every module begins with a comment that says what it is, and leaves nothing for later', () => {
  const texts = sources.map((file) => ({ file, text: readFileSync(`${root}/${file}`, 'utf8') }))
  expect(texts.filter(({ text }) => !/^(?:#!.*\n)?\/\*\*/.test(text)).map(({ file }) => file)).toEqual([])
  expect(texts.filter(({ text }) => /\b(?:TODO|FIXME)\b/.test(text)).map(({ file }) => file)).toEqual([])
})

it('the top level holds the folders of the house and what tools force there, and nothing else', () => {
  expect([...new Set(files.map((file) => file.split('/')[0]!))].sort()).toEqual([
    '.ci', '.editorconfig', '.gitignore', '.oxlintrc.json', 'LICENSE', 'README.md', 'bench', 'engine', 'package-lock.json', 'package.json',
    'storage', 'test', 'threads', 'tsconfig.json',
  ])
})

it('the built command runs as a file: npx makes it so only the first time that it meets the directory', () => {
  expect(spawnSync(`${root}/dist/engine/cli/main.js`, ['--version'], { encoding: 'utf8' })).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
})

it('no file names a registry, or where a package was downloaded', () => {
  expect(files.filter((file) => /"resolved": "http|registry\.\w+js/.test(readFileSync(`${root}/${file}`, 'utf8')) && !file.endsWith('house.test.ts'))).toEqual([])
})
