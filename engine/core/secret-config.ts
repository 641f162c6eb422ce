/**
 * What the checks of files with secrets have in common (gateways, headers by origin). A refusal names the option, the
 * place (`gateways[1].headers`) and what was expected there, and repeats nothing in whose place a secret may stand. Leaf module, pure.
 */
import { SluiceError } from './errors.ts'
import { Secret } from './secret.ts'

/** Throws `bad_option`. */
export type Refuse = (place: string, expected: string) => never

export function refusalsOf(flag: string): Refuse {
  return (place, expected) => {
    throw new SluiceError('bad_option', `${flag}: ${place}: expected ${expected}`)
  }
}

/** Name in lower case, and value. */
export type SecretField = readonly [string, Secret]

export function isRecord(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

export function checkFields(refuse: Refuse, place: string, given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  // Only a plain word is repeated: a text in the wrong place may be a secret.
  if (unknown !== undefined) refuse(place, `no fields but ${known.join(', ')}${/^[A-Za-z]{1,20}$/.test(unknown) ? `, given ${unknown}` : ''}`)
}

/** A name of a header field (RFC 9110 section 5.1). */
export const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i

/** Header fields that say how a message is framed or where it goes are not the operator's (RFC 9110 section 7.6.1, RFC 9112). */
export const framingFields = ['host', 'connection', 'keep-alive', 'content-length', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect', 'proxy-connection']

/** An object of header names and texts, without those that are `refused`. */
export function parseHeaders(refuse: Refuse, place: string, given: unknown, refused: readonly string[] = framingFields): readonly SecretField[] {
  if (!isRecord(given)) return refuse(place, 'an object of header names and texts')
  return Object.freeze(Object.entries(given).map(([name, value], at) => {
    const isRefused = refused.includes(name.toLowerCase())
    if (isRefused || !token.test(name)) refuse(`${place}, the name of number ${at + 1}`, `a header's, and none of ${refused.join(', ')}${isRefused ? `, given ${name}` : ''}`)
    if (typeof value !== 'string' || !/^[\x20-\x7e]*$/.test(value)) return refuse(`${place}, the value of number ${at + 1}`, 'a text of printable ASCII characters')
    return Object.freeze([name.toLowerCase(), new Secret(value)] as const)
  }))
}

/** RFC 7617: user and password with a colon between, in base64. */
export function basicCredentials(username: string, password: string): Secret {
  return new Secret(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`)
}
