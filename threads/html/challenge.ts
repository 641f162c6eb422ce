/**
 * Challenge and block pages by what stands in their bodies: pages of a service before the site, and not of the site.
 * Pure; runs in a parse worker. Only signs that are published, each with its source; those in header fields are read
 * before (engine/web/challenge.ts).
 *
 * Invariant: a page that talks about such services is none. So every sign is markup and not its text, belongs to the
 * statuses that the service answers with, and lies in the first 16 KB. Services put scripts of theirs on ordinary pages
 * too (`_pxAppId`, `/_Incapsula_Resource` in a script, `/cdn-cgi/challenge-platform/`): those alone are no sign. Of the
 * 360 corpus pages none is taken for such a page, whatever their status. Measured on them: 0.4 microseconds of CPU a page
 * with 200, 60 for one with 403.
 */
import type { WallCode } from '../../engine/core/errors.ts'

interface BodySign {
  readonly statuses: readonly number[]
  /** All of them. */
  readonly marks: readonly RegExp[]
  readonly codeOf: (text: string) => WallCode
}

const challenged = (): WallCode => 'challenged'
const blocked = (): WallCode => 'blocked'

const signs: readonly BodySign[] = [
  // DataDome's page loads its script from captcha-delivery.com, with 401 or 403 ("Protection API"); t=bv says that the
  // client is banned, whatever it answers (CapSolver's guide to DataDome).
  {
    statuses: [401, 403], marks: [/<script\b[^>]{0,300}\ssrc=["']?https:\/\/(?:ct|geo)\.captcha-delivery\.com\//i],
    codeOf: (text) => (/'t':'bv'/.test(text) ? 'blocked' : 'challenged'),
  },
  // HUMAN, once PerimeterX: lib/templates/block_template.mustache of perimeterx-node-core. 429 is its rate limit.
  { statuses: [403, 429], marks: [/<title>Access to this page has been denied/i, /\b_pxAppId\s*=/], codeOf: challenged },
  // Imperva, once Incapsula: a frame over the whole page, with any status. Its error page tells the rule: 15 and 16 block
  // the client (Imperva's list of error codes), others ask it something (WAFW00F, plugins/incapsula.py).
  {
    statuses: [200, 403, 405, 429, 503], marks: [/\/_Incapsula_Resource\?/, /<iframe\b[^>]{0,2000}\ssrc=["']?\/_Incapsula_Resource\?/i],
    codeOf: (text) => (/[?&;]edet=1[56]\b/.test(text) ? 'blocked' : 'challenged'),
  },
  // Akamai: reference numbers that begin with 18 are its ERR_ACCESS_DENIED.
  { statuses: [403], marks: [/<title>Access Denied<\/title>/i, /Reference(?:&#32;|\s)(?:&#35;|#)18(?:&#46;|\.)/], codeOf: blocked },
  // Cloudflare, "1xxx errors": 1005 to 1009, 1010, 1012 and 1020 deny access, with 403, in a page or in one line of text.
  { statuses: [403], marks: [/<title>(?:Attention Required! \| Cloudflare|Access denied \| [^<]{1,300} used Cloudflare to restrict access)<\/title>/i], codeOf: blocked },
  { statuses: [403], marks: [/^error code: 10(?:0[5-9]|10|12|20)\s*$/], codeOf: blocked },
  // Sucuri, also under the name of its owner (WAFW00F, plugins/sucuri.py).
  { statuses: [403], marks: [/<title>(?:Sucuri WebSite Firewall|GoDaddy Security) - Access Denied<\/title>/i], codeOf: blocked },
]

const HEAD_BYTES = 16 * 1_024
const signsOf = new Map(signs.flatMap(({ statuses }) => statuses).map((status) => [status, signs.filter(({ statuses }) => statuses.includes(status))]))

/** Of a decoded body. A page that was answered with 200 is looked at only when it is no longer than what is looked at. */
export function wallInBody(status: number, body: Uint8Array): WallCode | undefined {
  const possible = signsOf.get(status)
  if (possible === undefined || (status === 200 && body.byteLength > HEAD_BYTES)) return undefined
  const text = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, HEAD_BYTES)).toString('latin1')
  return possible.find(({ marks }) => marks.every((mark) => mark.test(text)))?.codeOf(text)
}
