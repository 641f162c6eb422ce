/**
 * The one SecureContext that all connections share: a context of its own for each connection costs 0.5 ms of CPU and
 * most of its memory (measured). Built once for a crawler, on the main thread.
 *
 * Without `ca` it trusts what Node trusts. With it, those and the given ones: giving Node a list replaces its own, so
 * its own is given again. Before Node 22.15 that list cannot be asked for whole, and what NODE_EXTRA_CA_CERTS adds is
 * then not in it.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as tls from 'node:tls'
import { SluiceError } from '../core/errors.ts'

export interface TlsTrust {
  readonly context: tls.SecureContext
  /** Every certificate is accepted, for any name. */
  readonly insecure: boolean
}

export interface TlsTrustOptions {
  /** File with certificates of further authorities, PEM. */
  readonly ca: string | undefined
  readonly insecure: boolean
}

/** Throws `file_unreadable` when the file cannot be read or holds no certificate. */
export function createTlsTrust({ ca, insecure }: TlsTrustOptions): TlsTrust {
  if (ca === undefined) return { context: tls.createSecureContext(), insecure }
  try {
    return { context: tls.createSecureContext({ ca: authoritiesWith(readFileSync(ca, 'latin1')) }), insecure }
  } catch (cause) {
    throw new SluiceError('file_unreadable', `--ca ${ca}: ${(cause as Error).message}`, { cause })
  }
}

/** The authorities that Node trusts, and those in a PEM text. */
export function authoritiesWith(pem: string): string[] {
  const given = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (given === null) throw new Error('there is no certificate in it')
  // Read here, because Node passes over one that it cannot read, and nobody would know why nothing is trusted.
  const read = given.map((certificate) => new X509Certificate(certificate).toString())
  const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => readonly string[] }
  return [...getCACertificates?.('default') ?? tls.rootCertificates, ...read]
}
