/**
 * What a crawl of a demonstration web must end with, from the site alone: every URL that pages lead to, and the outcome
 * of each. Nothing in it depends on time or on how often the crawler died: a fault is a function of the URL, so a page
 * that fails fails every time. Pure functions.
 *
 * One outcome is a matter of luck in any crawl: a page with status 503 rests its whole host, so the last pages of a host
 * end with their own answer or with the host's being given up, as the order of the tries has it.
 *
 * A page that was in a worker's hand at three kills, the last two while it was read alone, looks as if it had ended the
 * process: it is set aside, and what only it leads to is not found.
 */
import type { Fault, Page, Site } from '../../engine/demo/index.ts'
import type { PageRecord } from '../../engine/index.ts'

export type Expected = Partial<Pick<PageRecord, 'outcome' | 'status' | 'code' | 'attempts'>>

/** Outcomes with `retries` further tries, by what the page does. */
function outcomesWith(retries: number): Record<Fault | 'none' | 'private', Expected> {
  const attempts = 1 + retries
  return {
    none: { outcome: 'ok', status: 200 },
    private: { outcome: 'robots_denied', code: 'robots_disallowed' },
    not_found: { outcome: 'http_error', status: 404, attempts: 1 },
    gone: { outcome: 'http_error', status: 410, attempts: 1 },
    server_error: { outcome: 'http_error', status: 500, attempts },
    unavailable: {},
    redirect: { outcome: 'redirect', status: 302, attempts: 1 },
    redirect_chain: { outcome: 'redirect', status: 302, attempts: 1 },
    redirect_self: { outcome: 'redirect', status: 302, attempts: 1 },
    reset: { outcome: 'failed', code: 'connection_closed', attempts },
    no_answer: { outcome: 'failed', code: 'connection_closed', attempts },
    stall: { outcome: 'failed', code: 'timeout', attempts },
    wrong_type: { outcome: 'failed', code: 'unsupported_type', attempts: 1 },
    broken_gzip: { outcome: 'failed', code: 'bad_content_encoding', attempts: 1 },
    truncated: { outcome: 'failed', code: 'connection_closed', attempts },
  }
}

/** Every URL that can be reached from the seeds, with what must become of it. `setAside`: pages that the kills had set aside. */
export function expectedOutcomes(site: Site, retries: number, setAside: ReadonlySet<string>): ReadonlyMap<string, Expected> {
  const outcomes = outcomesWith(retries)
  const expected = new Map<string, Expected>()
  const found = site.seeds()
  for (let url = found.pop(); url !== undefined; url = found.pop()) {
    const page = expected.has(url) ? undefined : site.pageAt(url)
    if (page === undefined) continue
    if (setAside.has(url)) {
      expected.set(url, { outcome: 'failed', code: 'page_killed' })
      continue
    }
    expected.set(url, outcomes[page.kind === 'private' ? 'private' : page.fault])
    found.push(...targetsOf(site, page))
  }
  return expected
}

function targetsOf(site: Site, page: Page): string[] {
  if (page.kind === 'private') return []
  if (page.fault.startsWith('redirect')) return [site.redirectTarget(page)]
  return site.linksOf(page).map((url) => url.replace(/#.*/, ''))
}

/** A web of this seed, or the next, in which no page answers 503: each of those rests its host for up to minutes. */
export function seedWithout503(siteOf: (seed: number) => Site, seed: number): number {
  for (let next = seed; ; next += 1) {
    if (![...siteOf(next).allPages()].some(({ fault }) => fault === 'unavailable')) return next
  }
}
