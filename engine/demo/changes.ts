/**
 * How the demonstration web changes: it has editions, numbered from 0, and in each a share of the pages is another than
 * in the one before. Which ones is a function of seed, page and edition, so every process that asks agrees. Pages that
 * are gone are so from the first edition on, and only pages on which no other depends. No I/O; any thread.
 */
import { mix, share } from './random.ts'
import type { Site } from './site.ts'
import type { Page } from './types.ts'

/** The page as an edition has it. Faulty pages, those inside a redirect chain and private ones stay as they are. */
export function pageIn(site: Site, page: Page, edition: number): Page {
  if (edition === 0 || page.kind !== 'page' || page.fault !== 'none') return page
  const { changeShare = 0, goneShare = 0, seed } = site.options
  const hash = mix(seed, page.hostIndex, page.index)
  if (site.layout.isLeaf(page.hostIndex, page.index) && share(hash, 41) < goneShare) return { ...page, fault: 'gone' }
  for (let revision = edition; revision > 0; revision -= 1) if (share(hash, 43, revision) < changeShare) return { ...page, revision }
  return page
}
