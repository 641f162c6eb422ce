/**
 * A throw-away certificate authority for the demonstration web: made at each start, keys never leave the process's
 * memory. One leaf covers all domains, since choosing among several at each handshake would cost the server more than
 * it would show. The only file that imports @peculiar/x509. Main thread of the web's process.
 */
import { webcrypto } from 'node:crypto'

export interface Authority {
  /** Certificate of the authority, for clients. */
  readonly caPem: string
  /** Certificate and key of the leaf, for the server. */
  readonly certPem: string
  readonly keyPem: string
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const hourMs = 3_600_000

export async function makeAuthority(domains: readonly string[]): Promise<Authority> {
  provideReflectMetadata()
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto)
  const validity = { notBefore: new Date(Date.now() - hourMs), notAfter: new Date(Date.now() + 7 * 24 * hourMs) }
  const caKeys = await makeKeys()
  const leafKeys = await makeKeys()
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    name: 'CN=Sluice demonstration authority',
    signingAlgorithm: algorithm,
    keys: caKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  })
  const leaf = await x509.X509CertificateGenerator.create({
    ...validity,
    subject: `CN=${domains[0] ?? 'demo.test'}`,
    issuer: ca.subject,
    publicKey: leafKeys.publicKey,
    signingKey: caKeys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(domains.flatMap((domain) => [domain, `*.${domain}`]).map((value) => ({ type: 'dns' as const, value }))),
      await x509.AuthorityKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  })
  const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', leafKeys.privateKey)).toString('base64')
  return {
    caPem: ca.toString('pem') + '\n',
    certPem: leaf.toString('pem') + '\n',
    keyPem: `-----BEGIN PRIVATE KEY-----\n${key.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`,
  }
}

async function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

/**
 * @peculiar/x509 finds its parts by decorators, which need the three functions of the reflect-metadata proposal. The
 * package of that name would be one more dependency for these lines; where it is loaded, it is left in place.
 */
function provideReflectMetadata(): void {
  if ('getMetadata' in Reflect) return
  const metadata = new WeakMap<object, Map<unknown, unknown>>()
  const getOwnMetadata = (key: unknown, target: object): unknown => metadata.get(target)?.get(key)
  const getMetadata = (key: unknown, target: object): unknown => {
    for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at) as object | null) {
      if (metadata.get(at)?.has(key) === true) return getOwnMetadata(key, at)
    }
    return undefined
  }
  const defineMetadata = (key: unknown, value: unknown, target: object): void => {
    const own = metadata.get(target) ?? new Map<unknown, unknown>()
    metadata.set(target, own.set(key, value))
  }
  Object.assign(Reflect, { defineMetadata, getMetadata, getOwnMetadata })
}
