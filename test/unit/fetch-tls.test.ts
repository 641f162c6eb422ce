import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as tls from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { makeAuthority } from '../../engine/demo/authority.ts'
import { authoritiesWith, createTlsTrust } from '../../engine/fetch/tls-context.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

describe('the file of authorities', () => {
  test('that is missing, or holds no certificate or a broken one, is unreadable in one line', () => {
    const broken = '-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n'
    for (const path of [join(folder, 'none.pem'), file('empty.pem', ''), file('text.pem', 'a text'), file('broken.pem', broken)]) {
      let thrown: unknown
      try {
        createTlsTrust({ ca: path, insecure: false })
      } catch (error) {
        thrown = error
      }
      expect(thrown).toMatchObject({ code: 'file_unreadable', message: expect.stringMatching(/^--ca .*\.pem: .+$/) })
    }
  })

  test('adds all its certificates to the usual authorities', async () => {
    const [one, two] = [await makeAuthority(['a.test']), await makeAuthority(['b.test'])]
    const authorities = authoritiesWith(`a comment\n${one.caPem}\nanother\n${two.caPem}`)
    expect(tls.rootCertificates.length).toBeGreaterThan(100)
    for (const certificate of tls.rootCertificates) expect(authorities).toContain(certificate)
    expect(authorities.slice(-2).map((pem) => pem.trim())).toEqual([one.caPem.trim(), two.caPem.trim()])
  })
})
