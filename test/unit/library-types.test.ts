/** The types that a program writes against the library; that this compiles is most of the test. */
import { expect, test } from 'vitest'
import type { Extractor, ParsedPage } from '../../engine/index.ts'

test('an extractor can be typed from the package alone', () => {
  const extractor: Extractor = (page: ParsedPage) => ({ title: page.meta.title, links: page.links.map(({ url }) => url) })
  const page: Pick<ParsedPage, 'meta' | 'links'> = { meta: { title: 'a', robots: {} }, links: [] }
  expect(extractor(page as ParsedPage)).toEqual({ title: 'a', links: [] })
})
