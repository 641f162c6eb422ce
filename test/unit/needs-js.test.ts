import { existsSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { needsJs } from '../../threads/html/needs-js.ts'
import { corpusPath } from '../support/corpus.ts'

const words = (chars: number): string => 'some text '.repeat(Math.ceil(chars / 10)).slice(0, chars)

/** The facts as the scanner counts them, by other means: enough for these documents. */
function judge(html: string, isCut = false): boolean {
  const scripts = [...html.matchAll(/<script\b([^>]*)>([^]*?)(?:<\/script|$)/gi)]
  const text = html.replaceAll(/<!--[^]*?(?:-->|$)|<(script|style|noscript|template|textarea|title)\b[^]*?(?:<\/\1[^>]*>|$)|<[^>]*>/gi, '').replaceAll(/\s+/g, ' ').trim()
  return needsJs({
    textLength: text.length, scriptLength: scripts.reduce((sum, script) => sum + script[2]!.length, 0),
    scriptsLoaded: scripts.filter((script) => /\ssrc=/i.test(script[1]!)).length,
  }, Buffer.from(html), isCut)
}

const noscript = '<noscript>You need to enable JavaScript to run this app.</noscript>'
const vueNoscript = "<noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript>"

/** What the frameworks' own templates serve before a script has run. */
const shells: readonly [string, string][] = [
  ['React', `<title>React App</title><script defer src="/static/js/main.js"></script>${noscript}<div id="root"></div>`],
  ['React in Vite', '<script type="module" src="/assets/index.js"></script><div id="root"></div>'],
  ['Vue', `${vueNoscript}<div id="app"></div><script src="/js/app.js"></script>`],
  ['Next', '<div id="__next"></div><script id="__NEXT_DATA__" type="application/json">{"props":{},"page":"/"}</script><script src="/_next/main.js"></script>'],
  ['Nuxt', '<div id="__nuxt"></div><script>window.__NUXT__={};window.__NUXT__.config={}</script><script type="module" src="/_nuxt/entry.js"></script>'],
  ['Angular', '<app-root></app-root><script src="main.js" type="module"></script>'],
  ['Angular that says it is loading', '<app-root>Loading...</app-root><script src="main.js" type="module"></script>'],
  ['SvelteKit, whose one script is short', '<div style="display: contents"><script>{__sveltekit_1ab = {base: ""};Promise.all([import("/a.js")])}</script></div>'],
  ['Ember', '<meta name="shop/config/environment" content="%7B%7D"><script src="/assets/vendor.js"></script><script src="/assets/shop.js"></script>'],
  ['Gatsby', '<div id="___gatsby"></div><script src="/app.js"></script>'],
]

describe('a page needs scripts', () => {
  it.each(shells)('when it is a shell of %s', (_, html) => {
    expect(judge(`<!doctype html><html><body>${html}</body></html>`)).toBe(true)
  })

  it.each([
    ['an empty root', `<nav>${words(500)}</nav><div id="root"></div><script src="/app.js"></script>`],
    ['an empty root without quotes', `<nav>${words(500)}</nav><div id=app></div><script>boot()</script>`],
    ['an empty root with classes', `<nav>${words(500)}</nav><div id='__next' class="a b">\n</div><script src="/app.js"></script>`],
    ['an empty app-root', `<nav>${words(500)}</nav><app-root _nghost-ng></app-root><script src="/app.js"></script>`],
    ['words that say so', `<nav>${words(500)}</nav><div class="x"></div>${vueNoscript}<script src="/app.js"></script>`],
  ])('when it has a menu or a footer, and %s', (_, html) => {
    expect(judge(html)).toBe(true)
  })

  it('when it has hardly any text and loads scripts, or has many of its own, without any mark', () => {
    expect(judge(`<p>${words(199)}</p><script src="/a.js"></script>`)).toBe(true)
    expect(judge(`<p>${words(199)}</p><script>${'x'.repeat(1_001)}</script>`)).toBe(true)
  })
})

describe('a page needs no scripts', () => {
  it.each(shells)('when %s was rendered by the server', (_, html) => {
    const rendered = html.replace(/(<div id="[^"]*">|<app-root>|<div style="[^"]*">|$)/, `$1<main><p>${words(1_200)}</p></main>`)
    expect(judge(rendered)).toBe(false)
  })

  it('when a root holds a short text', () => {
    expect(judge(`<div id="root"><p>${words(300)}</p></div><script src="/app.js"></script>`)).toBe(false)
    expect(judge(`<app-root ng-version="17.0.0"><p>${words(300)}</p></app-root><script src="/app.js"></script>`)).toBe(false)
  })

  it('when it has none', () => {
    expect(judge('<div id="root"></div>')).toBe(false)
    expect(judge('')).toBe(false)
  })

  it('when they are short, and nothing says that they build the page', () => {
    expect(judge('<p>under construction</p><script>count()</script>')).toBe(false)
    expect(judge(`<p>hi</p><script>${'x'.repeat(1_000)}</script>`)).toBe(false)
  })

  it('when it has text, be it little and without a mark, or with a mark and long', () => {
    expect(judge(`<p>${words(200)}x</p><script src="/a.js"></script>`)).toBe(false)
    expect(judge(`<p>${words(1_000)}x</p><div id="root"></div>${noscript}<script src="/a.js"></script>`)).toBe(false)
  })

  it('as far as its beginning can tell, when the rest was cut', () => {
    expect(judge('<style>a{}</style><div id="root"></div><script src="/app.js"></script>', true)).toBe(false)
  })

  it('when an id only begins or ends like that of an application', () => {
    const page = (id: string): boolean => judge(`<p>${words(300)}</p><div id="${id}"></div><script src="/a.js"></script>`)
    expect([page('roots'), page('approval'), page('my-root'), page('root')]).toEqual([false, false, false, true])
    expect(judge(`<p>${words(300)}</p><div data-id="root"></div><script src="/a.js"></script>`)).toBe(false)
  })
})

const index = corpusPath('pages/index.json')

it.skipIf(!existsSync(index))('none of the 360 corpus pages needs scripts, whole or cut (skipped where the corpus is missing)', () => {
  const pages = JSON.parse(readFileSync(index, 'utf8')) as readonly { readonly file: string }[]
  const wrong: string[] = []
  let readBare = 0
  for (const { file } of pages) {
    const bytes = brotliDecompressSync(readFileSync(corpusPath(`pages/${file}`)))
    const cut = bytes.subarray(0, 256_000)
    if (judge(cut.toString('latin1'))) readBare += 1
    if (judge(bytes.toString('latin1')) || judge(cut.toString('latin1'), cut.length < bytes.length)) wrong.push(file)
  }
  expect(wrong).toEqual([])
  // So the cut must be told: without it many would be misjudged.
  expect(readBare).toBeGreaterThan(10)
}, 60_000)
