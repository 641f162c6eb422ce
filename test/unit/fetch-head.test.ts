import { describe, expect, test } from 'vitest'
import { failureTable } from '../../engine/core/errors.ts'
import { acceptBody } from '../../engine/fetch/content-type.ts'
import { failureOf, failureOfLookup, type Phase } from '../../engine/fetch/failure-codes.ts'
import { headerOf, readHead } from '../../engine/fetch/response-head.ts'

const raw = (...fields: string[]): Uint8Array[] => fields.map((field) => Buffer.from(field, 'latin1'))

describe('the head of a response', () => {
  test('keeps names, order, repetition and every byte', () => {
    const head = readHead(200, 'OK', raw('SET-cookie', 'a=1', 'set-Cookie', 'b=\xe9\x80', 'X-Empty', ''))
    expect(head.headers).toEqual(['SET-cookie', 'a=1', 'set-Cookie', 'b=\xe9\x80', 'X-Empty', ''])
    expect(Buffer.from(head.headerBlock).toString('latin1')).toBe('SET-cookie: a=1\r\nset-Cookie: b=\xe9\x80\r\nX-Empty: \r\n')
    expect(headerOf(head.headers, 'set-cookie')).toBe('a=1')
    expect(headerOf(head.headers, 'x')).toBeUndefined()
  })

  test.each([
    ['100', 100], ['0', 0], ['00012', 12], ['-1', undefined], ['1e9', undefined], ['', undefined], ['100, 100', undefined], ['9'.repeat(40), undefined],
  ])('a Content-Length of "%s" is believed as %s', (text, length) => {
    expect(readHead(200, '', raw('content-length', text)).contentLength).toBe(length)
  })

  test('204 and 304 have no body, whatever they say', () => {
    expect(readHead(304, '', raw('content-length', '500')).contentLength).toBe(0)
    expect(readHead(204, '', []).contentLength).toBe(0)
    expect(readHead(200, '', []).contentLength).toBeUndefined()
  })
})

describe('the content type', () => {
  test.each([
    'text/html', 'text/html; charset=utf-8', 'TEXT/HTML', 'text/plain', 'text/markdown', 'application/xhtml+xml', 'application/xml', 'application/rss+xml',
    'application/atom+xml;type=feed', 'image/svg+xml', 'application/json', 'application/ld+json', 'application/feed+json', '', 'html', 'none; charset=x',
  ])('"%s" is read', (type) => {
    expect(acceptBody(200, type)).toBe('read')
  })

  test.each(['image/png', 'application/pdf', 'application/octet-stream', 'video/mp4', 'application/zip', 'font/woff2', 'application/javascript', 'texting/x'])(
    '"%s" is refused', (type) => {
      expect(acceptBody(200, type)).toBe('refuse')
      expect(acceptBody(206, type)).toBe('refuse')
    })

  test('is of no matter outside 2xx, and may be absent', () => {
    for (const status of [301, 404, 429, 503]) expect(acceptBody(status, 'image/png')).toBe('read')
    expect(acceptBody(200, undefined)).toBe('read')
  })
})

const error = (code: string): Error => Object.assign(new Error('it\nfailed'), { code })

describe('an error', () => {
  test.each<[string, Phase, string]>([
    ['ECONNREFUSED', 'connect', 'connect_refused'], ['ETIMEDOUT', 'connect', 'connect_timeout'], ['EHOSTUNREACH', 'connect', 'connect_failed'],
    ['ENETUNREACH', 'connect', 'connect_failed'], ['EADDRNOTAVAIL', 'connect', 'connect_failed'],
    ['ECONNRESET', 'connect', 'connect_failed'], ['ECONNRESET', 'handshake', 'tls_failed'], ['EPROTO', 'handshake', 'tls_failed'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'handshake', 'tls_failed'], ['ERR_TLS_CERT_ALTNAME_INVALID', 'handshake', 'tls_name_mismatch'],
    ['CERT_HAS_EXPIRED', 'handshake', 'tls_untrusted'], ['DEPTH_ZERO_SELF_SIGNED_CERT', 'handshake', 'tls_untrusted'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'handshake', 'tls_untrusted'], ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'handshake', 'tls_untrusted'],
    ['ECONNRESET', 'head', 'connection_closed'], ['EPIPE', 'head', 'connection_closed'], ['UND_ERR_SOCKET', 'head', 'connection_closed'],
    ['UND_ERR_HEADERS_OVERFLOW', 'head', 'headers_too_large'], ['HPE_INVALID_CONSTANT', 'head', 'bad_http'], ['HPE_INVALID_EOF_STATE', 'head', 'connection_closed'],
    ['UND_ERR_HEADERS_OVERFLOW', 'body', 'headers_too_large'], ['ERR_ASSERTION', 'head', 'bad_http'],
    ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'head', 'bad_http'], ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'body', 'connection_closed'],
    ['HPE_INVALID_CHUNK_SIZE', 'body', 'bad_http'], ['HPE_INVALID_EOF_STATE', 'body', 'connection_closed'], ['ECONNRESET', 'body', 'connection_closed'],
  ])('%s in phase %s is %s', (word, phase, code) => {
    expect(failureOf(error(word), phase)).toMatchObject({ code, detail: `${word}: it failed` })
  })

  test('is of the network here when it says that there is no way out, and not when a far host or its name server says no', () => {
    const localOf = (word: string): boolean => failureOf(error(word), 'connect').isLocal === true
    expect(['ENETDOWN', 'ENETUNREACH'].map(localOf)).toEqual([true, true])
    expect(['EHOSTUNREACH', 'ECONNREFUSED', 'ETIMEDOUT'].map(localOf)).toEqual([false, false, false])
    expect(['EAI_AGAIN', 'ESERVFAIL', 'ENOTFOUND'].map((word) => failureOfLookup(error(word)).isLocal === true)).toEqual([true, false, false])
  })

  test.each(['EMFILE', 'ENFILE'])('%s is a lack of ours, connecting and looking up: nobody else is to blame', (word) => {
    expect(failureOf(error(word), 'connect')).toMatchObject({ code: 'connect_failed', noFiles: true })
    expect(failureOfLookup(error(word))).toMatchObject({ code: 'dns_failed', noFiles: true })
  })

  test('that nobody knows still has a code of the table in every phase', () => {
    for (const phase of ['connect', 'handshake', 'head', 'body'] as const) {
      for (const thrown of [new Error('?'), error('ENEW'), { toString: () => 'odd' }, 'text']) {
        expect(Object.keys(failureTable)).toContain(failureOf(thrown, phase).code)
      }
    }
  })

  test('says what it was in one line that is not long', () => {
    expect(failureOf(new Error('x'.repeat(5_000)), 'head').detail).toHaveLength(300)
  })
})
