import { existsSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { priceOf, wallInHead } from '../../engine/web/challenge.ts'
import { wallInBody } from '../../threads/html/challenge.ts'
import { corpusPath } from '../support/corpus.ts'

const walls = [200, 202, 401, 403, 405, 429, 503]

describe('a challenge or block page by its head', () => {
  it.each([
    ['Cloudflare challenges, with any status', 403, ['CF-Mitigated', 'challenge'], 'challenged'],
    ['Cloudflare challenges, with 429 too', 429, ['cf-mitigated', 'challenge'], 'challenged'],
    ['AWS WAF challenges', 202, ['x-amzn-waf-action', 'challenge'], 'challenged'],
    ['AWS WAF asks with a puzzle', 405, ['X-Amzn-Waf-Action', 'captcha'], 'challenged'],
    ['DataDome refuses, in JSON', 403, ['X-DD-B', '1'], 'challenged'],
    ['the owner of the site has blocked the crawler', 403, ['crawler-error', 'CrawlerForbidden'], 'blocked'],
    ['Sucuri blocks', 403, ['X-Sucuri-Block', 'BNP005'], 'blocked'],
  ])('%s', (_, status, headers, code) => {
    expect(wallInHead(status, ['Content-Type', 'text/html', ...headers])).toBe(code)
  })

  it.each([
    ['fields that a service puts on every answer', 200, ['x-datadome', 'protected', 'server', 'cloudflare', 'cf-ray', '8f2b', 'x-iinfo', '1-2', 'x-sucuri-id', '11016', 'x-sucuri-cache', 'HIT']],
    ['the same with 403, which may be the site\'s own', 403, ['x-datadome', 'protected', 'server', 'AkamaiGHost', 'x-iinfo', '1-2', 'x-sucuri-id', '11016']],
    ['a value that is not the documented one', 403, ['cf-mitigated', 'none', 'crawler-error', 'PaymentFailed']],
    ['an action that comes with another status', 200, ['x-amzn-waf-action', 'challenge', 'x-dd-b', '1', 'x-sucuri-block', 'X']],
    ['nothing', 403, []],
  ])('is not: %s', (_, status, headers) => {
    expect(wallInHead(status, headers)).toBeUndefined()
  })

  it('a price is what the site says, if it is a short printable text', () => {
    expect(priceOf(['Crawler-Price', ' USD 0.01 '])).toBe('USD 0.01')
    for (const price of ['', '  ', 'USD \u0007', 'x'.repeat(65)]) expect(priceOf(['crawler-price', price])).toBeUndefined()
    expect(priceOf([])).toBeUndefined()
  })
})

const dataDome = (t: string): string => `<html lang="en"><head><title>a.test</title></head><body><p id="cmsg">Please enable JS</p>
  <script data-cfasync="false">var dd={'rt':'c','cid':'AHr','t':'${t}','host':'geo.captcha-delivery.com'}</script>
  <script data-cfasync="false" src="https://ct.captcha-delivery.com/c.js"></script></body></html>`
const human = '<html><head><title>Access to this page has been denied</title></head><body><script>window._pxVid = \'\';window._pxAppId = \'PXa\';</script></body></html>'
const imperva = (edet: number): string => `<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><body>
  <iframe frameborder="0" height="100%" id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31&amp;xinfo=8-1&amp;incident_id=15-4&amp;edet=${edet}&amp;cinfo=04">Request unsuccessful. Incapsula incident ID: 15-4</iframe></body></html>`
const akamai = '<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\nYou don\'t have permission.<P>\nReference&#32;&#35;18&#46;3faf3554&#46;1617&#46;da3d\n</BODY>\n</HTML>'
const cloudflare = '<!DOCTYPE html><head><title>Access denied | a.test used Cloudflare to restrict access</title></head><body>Error code: 1020</body>'
const sucuri = '<!DOCTYPE html><html><head><title>Sucuri WebSite Firewall - Access Denied</title></head><body>Block ID: BNP005</body></html>'

const pages: readonly [string, number, string, string][] = [
  ['DataDome, which asks', 403, dataDome('fe'), 'challenged'],
  ['DataDome, which has banned the client', 403, dataDome('bv'), 'blocked'],
  ['HUMAN', 403, human, 'challenged'],
  ['Imperva, which asks, with 200', 200, imperva(12), 'challenged'],
  ['Imperva, whose rule blocks', 403, imperva(15), 'blocked'],
  ['Akamai', 403, akamai, 'blocked'],
  ['Cloudflare, a page', 403, cloudflare, 'blocked'],
  ['Cloudflare, its older page', 403, '<title>Attention Required! | Cloudflare</title>', 'blocked'],
  ['Cloudflare, one line', 403, 'error code: 1020\n', 'blocked'],
  ['Sucuri', 403, sucuri, 'blocked'],
]

describe('a challenge or block page by its body', () => {
  it.each(pages)('%s', (_, status, body, code) => {
    expect(wallInBody(status, Buffer.from(body))).toBe(code)
  })

  it('is told only with the statuses of its service, and in the first 16 KB', () => {
    for (const [name, status, body] of pages) {
      for (const other of [202, 404, 500]) expect(wallInBody(other, Buffer.from(body)), name).toBeUndefined()
      if (status === 403 && !name.startsWith('Imperva')) expect(wallInBody(200, Buffer.from(body)), name).toBeUndefined()
      expect(wallInBody(status, Buffer.from(' '.repeat(16 * 1_024) + body)), name).toBeUndefined()
    }
  })

  it('is none when a page writes about it, or carries the scripts that services put on ordinary pages', () => {
    const escaped = pages.map(([, , body]) => body.replaceAll('<', '&lt;')).join('\n')
    const article = `<title>How walls look</title><pre>${escaped}</pre><p>Request unsuccessful. Incapsula incident ID: 1. error code: 1020. Reference #18.3f</p>`
    const scripts = '<title>Shop</title><script src="/_Incapsula_Resource?SWJIYLWA=719d"></script><script>window._pxAppId = \'PXa\'</script><script src="https://js.datadome.co/tags.js"></script><script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'
    for (const status of walls) for (const page of [article, scripts]) expect(wallInBody(status, Buffer.from(page))).toBeUndefined()
  })

  it('costs no more than a look at 16 KB, whatever these hold', () => {
    const hostile = ['<iframe ', '<script ', '<iframe /_Incapsula_Resource?', '<title>Access denied | '].map((part) => part.repeat(20_000 / part.length))
    for (const status of walls) for (const page of hostile) expect(wallInBody(status, Buffer.from(page.slice(0, 16 * 1_024)))).toBeUndefined()
  })
})

const index = corpusPath('pages/index.json')

it.skipIf(!existsSync(index))('none of the 360 corpus pages is taken for a wall, whatever its status (skipped where the corpus is missing)', () => {
  const files = (JSON.parse(readFileSync(index, 'utf8')) as readonly { readonly file: string }[]).map(({ file }) => file)
  const wrong = files.filter((file) => {
    const bytes = brotliDecompressSync(readFileSync(corpusPath(`pages/${file}`)))
    // Cut, so that a long page is looked at with 200 too.
    return walls.some((status) => wallInBody(status, bytes) ?? wallInBody(status, bytes.subarray(0, 16 * 1_024)))
  })
  expect(files).toHaveLength(360)
  expect(wrong).toEqual([])
}, 60_000)
