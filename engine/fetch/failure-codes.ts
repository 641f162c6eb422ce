/**
 * What the words of Node, OpenSSL, c-ares and undici mean in the failure table: one table for each phase of a fetch,
 * because one word means different things in different phases (a reset while connecting is the host's failure, in the
 * middle of a body it is the URL's). Pure; runs anywhere.
 */
import type { FailureCode } from '../core/errors.ts'

/** connect: TCP. handshake: TLS. head: from the request to the end of the headers. body: after them. */
export type Phase = 'connect' | 'handshake' | 'head' | 'body'

export interface Failure {
  readonly code: FailureCode
  /** For people, one line. */
  readonly detail: string
  /** This process may open no more files: no fault of the other side's. */
  readonly noFiles?: true
  /** It can only be the network here: nothing was sent that a host could have answered. */
  readonly isLocal?: true
}

/** No route from here, and no name server to ask: see name-lookup.ts for when getaddrinfo is asked. */
const local = new Set(['ENETDOWN', 'ENETUNREACH', 'EAI_AGAIN'])

interface PhaseTable {
  readonly otherwise: FailureCode
  readonly codes: Readonly<Record<string, FailureCode>>
}

/** OpenSSL's verification results (X509_V_ERR_*, as Node spells them) that say "this chain is not trusted". */
const untrusted = [
  'UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_CRL', 'UNABLE_TO_DECRYPT_CERT_SIGNATURE', 'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY', 'CERT_SIGNATURE_FAILURE', 'CRL_SIGNATURE_FAILURE', 'CERT_NOT_YET_VALID',
  'CERT_HAS_EXPIRED', 'CRL_NOT_YET_VALID', 'CRL_HAS_EXPIRED', 'ERROR_IN_CERT_NOT_BEFORE_FIELD', 'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_CHAIN_TOO_LONG', 'CERT_REVOKED', 'INVALID_CA', 'PATH_LENGTH_EXCEEDED',
  'INVALID_PURPOSE', 'CERT_UNTRUSTED', 'CERT_REJECTED', 'CA_MD_TOO_WEAK', 'CA_KEY_TOO_SMALL', 'EE_KEY_TOO_SMALL',
] as const

/** Of undici, when its parser takes what the rest of it does not: a status below 100; a 100 or a 101 that nobody asked for (see wordOf). */
const notHttp = { ERR_ASSERTION: 'bad_http', UND_ERR_BAD_RESPONSE: 'bad_http' } as const

const phases: Readonly<Record<Phase, PhaseTable>> = {
  connect: {
    otherwise: 'connect_failed',
    codes: { ECONNREFUSED: 'connect_refused', ETIMEDOUT: 'connect_timeout' },
  },
  handshake: {
    otherwise: 'tls_failed',
    codes: {
      ETIMEDOUT: 'connect_timeout',
      ERR_TLS_CERT_ALTNAME_INVALID: 'tls_name_mismatch',
      HOSTNAME_MISMATCH: 'tls_name_mismatch',
      ...Object.fromEntries(untrusted.map((code) => [code, 'tls_untrusted' as const])),
    },
  },
  head: {
    otherwise: 'connection_closed',
    codes: {
      UND_ERR_HEADERS_OVERFLOW: 'headers_too_large',
      HPE_HEADER_OVERFLOW: 'headers_too_large',
      // The end of the stream in the middle of the headers: the server closed, what it had sent was HTTP.
      HPE_INVALID_EOF_STATE: 'connection_closed',
      // undici's answer to a head that has both Content-Length and Transfer-Encoding.
      UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'bad_http',
      ...notHttp,
    },
  },
  body: {
    otherwise: 'connection_closed',
    // Trailers are counted as the head is.
    codes: { UND_ERR_HEADERS_OVERFLOW: 'headers_too_large', HPE_INVALID_EOF_STATE: 'connection_closed', ...notHttp },
  },
}

/** The failure that an error means in a phase. Every error has one. */
export function failureOf(error: unknown, phase: Phase): Failure {
  const word = wordOf(error as ErrorFacts)
  const { codes, otherwise } = phases[phase]
  // Names of undici's parser: whatever is wrong with the bytes, it is not the HTTP that we speak.
  const failure = codes[word] ?? (word.startsWith('HPE_') ? 'bad_http' : otherwise)
  return { code: failure, detail: oneLine(word, String((error as ErrorFacts).message ?? error)), ...ownWordsOf(word) }
}

/** What the word says of us: of this process, and of the system (open(2), socket(2)), or of the network here. */
function ownWordsOf(word: string): Pick<Failure, 'isLocal' | 'noFiles'> | undefined {
  if (local.has(word)) return { isLocal: true }
  return word === 'EMFILE' || word === 'ENFILE' ? { noFiles: true } : undefined
}

interface ErrorFacts {
  readonly code?: unknown
  readonly name?: unknown
  readonly message?: unknown
  readonly data?: unknown
}

function wordOf({ code, name, data, message }: ErrorFacts): string {
  // undici has one code for all that can be wrong with a socket; these two are a server that is there and talks.
  if (code === 'UND_ERR_SOCKET' && (message === 'bad response' || message === 'bad upgrade')) return 'UND_ERR_BAD_RESPONSE'
  if (typeof code === 'string') return code
  // undici 7 looks its parser's codes up the wrong way round, so they are missing. The data are what could not be
  // parsed; when there are none, it was the end of the stream.
  if (name === 'HTTPParserError') return data === '' ? 'HPE_INVALID_EOF_STATE' : 'HPE_STRICT'
  return ''
}

/** c-ares and getaddrinfo: what says that the name has no address, or cannot be a name. All else may pass. */
const nameless = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME', 'EAI_NONAME', 'EAI_NODATA', 'ERR_INVALID_ARG_VALUE'])

/** The failure that an error of a look-up means. */
export function failureOfLookup(error: unknown): Failure {
  const word = wordOf(error as ErrorFacts)
  return { code: nameless.has(word) ? 'dns_not_found' : 'dns_failed', detail: oneLine(word, String((error as ErrorFacts).message ?? error)), ...ownWordsOf(word) }
}

const DETAIL_LENGTH_MAX = 300

function oneLine(word: string, message: string): string {
  const text = message.replace(/\s+/g, ' ').trim()
  return (word === '' || text.includes(word) ? text : `${word}: ${text}`).slice(0, DETAIL_LENGTH_MAX)
}
