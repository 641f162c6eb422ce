/** The cookie jar against a list that is gone through from end to end. */
import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { Cookies } from '../../engine/web/cookies.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

interface ModelCookie {
  readonly site: string
  readonly name: string
  readonly domain: string
  readonly isWide: boolean
  readonly path: string
  readonly isSecure: boolean
  value: string
  endsAtMs: number
}

const sites: Readonly<Record<string, string>> = {
  'shop.co.uk': 'shop.co.uk', 'www.shop.co.uk': 'shop.co.uk', 'a.www.shop.co.uk': 'shop.co.uk', 'myshop.co.uk': 'myshop.co.uk', 'one.github.io': 'one.github.io', 'two.github.io': 'two.github.io', '10.0.0.1': '10.0.0.1',
}
const domains = ['', '', 'shop.co.uk', '.www.shop.co.uk', 'a.www.shop.co.uk', 'co.uk', 'uk', 'github.io', 'one.github.io', '0.0.1', '10.0.0.1']
const paths = ['/', '/a', '/a/', '/a/b', '/ab', '/a/b/c']

const isWithin = (host: string, domain: string): boolean => host === domain || (host.endsWith(`.${domain}`) && !/^[\d.]+$/.test(host))
const isUnder = (path: string, of: string): boolean => `${path}/`.startsWith(of.endsWith('/') ? of : `${of}/`) && (path === of || path.startsWith(of))

class Model {
  list: ModelCookie[] = []

  set(url: URL, given: Pick<ModelCookie, 'name' | 'value' | 'isSecure' | 'endsAtMs'> & { domain: string, path: string }, nowMs: number): boolean {
    this.list = this.list.filter(({ endsAtMs }) => endsAtMs > nowMs)
    const site = sites[url.hostname]!
    const domain = given.domain.replace(/^\./, '') || url.hostname
    if (!isWithin(url.hostname, domain) || !isWithin(domain, site) || (given.isSecure && url.protocol === 'http:')) return false
    const path = given.path || url.pathname.slice(0, Math.max(1, url.pathname.lastIndexOf('/')))
    const old = this.list.find((one) => one.name === given.name && one.domain === domain && one.path === path)
    // What came in clear text is not sent before or in the place of what never does.
    const hides = (kept: ModelCookie): boolean => kept.isSecure && kept.name === given.name && isUnder(path, kept.path) && (isWithin(domain, kept.domain) || isWithin(kept.domain, domain))
    if (url.protocol === 'http:' && this.list.some(hides)) return false
    if (given.endsAtMs <= nowMs) {
      this.list = this.list.filter((one) => one !== old)
      return old !== undefined
    }
    const made = { ...given, site, domain, path, isWide: given.domain !== '' }
    if (old === undefined) this.list.push(made)
    else this.list[this.list.indexOf(old)] = made
    const ofSite = this.list.filter((one) => one.site === site)
    if (ofSite.length > limits.cookiesPerSiteMax) this.list.splice(this.list.indexOf(ofSite[0]!), 1)
    return old?.value !== given.value
  }

  sent(url: URL, nowMs: number): string | undefined {
    const fitting = this.list.filter((one) => one.endsAtMs > nowMs && (one.isWide ? isWithin(url.hostname, one.domain) : url.hostname === one.domain) && isUnder(url.pathname, one.path) && (!one.isSecure || url.protocol === 'https:'))
    return fitting.toSorted((a, b) => b.path.length - a.path.length).map(({ name, value }) => `${name}=${value}`).join('; ') || undefined
  }
}

test('the jar sends what a list of all cookies would, after any answers and at any time', async () => {
  let sent = 0
  await withSeeds(12, (random) => {
    const clock = new TestClock()
    const cookies = new Cookies({ clock })
    const model = new Model()
    const names = integer(random, 2) === 0 ? 4 : 60
    for (let step = 0; step < 300; step += 1) {
      if (integer(random, 5) === 0) clock.advance(integer(random, 40_000))
      const url = new URL(`${pick(random, ['http', 'https'])}://${pick(random, Object.keys(sites))}${pick(random, paths)}`)
      const nowMs = clock.wallMs()
      const [seconds, given] = [integer(random, 120) - 10, {
        name: `n${integer(random, names)}`, value: `${integer(random, 3)}`, isSecure: integer(random, 3) === 0, domain: pick(random, domains), path: pick(random, ['', ...paths]),
      }]
      const life = pick(random, ['none', 'max-age', 'expires'] as const)
      const endsAtMs = life === 'none' ? Number.POSITIVE_INFINITY : life === 'max-age' ? (seconds <= 0 ? 0 : nowMs + seconds * 1_000) : Math.floor((nowMs + seconds * 1_000) / 1_000) * 1_000
      const field = [
        `${given.name}=${given.value}`, ...(given.domain === '' ? [] : [`Domain=${given.domain}`]), ...(given.path === '' ? [] : [`Path=${given.path}`]), ...(given.isSecure ? ['Secure'] : []),
        ...(life === 'max-age' ? [`Max-Age=${seconds}`] : life === 'expires' ? [`Expires=${new Date(endsAtMs).toUTCString()}`] : []),
      ].join('; ')
      expect(cookies.receive(url, ['set-cookie', field]), `${url.href} ${field}`).toBe(model.set(url, { ...given, endsAtMs }, nowMs))
      const asked = new URL(`${pick(random, ['http', 'https'])}://${pick(random, Object.keys(sites))}${pick(random, paths)}`)
      const cookie = cookies.headerFor(asked)
      expect(cookie, asked.href).toBe(model.sent(asked, nowMs))
      if (cookie !== undefined) sent += 1
    }
  })
  expect(sent).toBeGreaterThan(20)
})
