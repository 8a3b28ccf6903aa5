import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';

const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const MAX_CERTIFICATES = 8;

/** Returns the certificates of a PEM file, or undefined if the file has none, too many, or a malformed one. */
export function certificatesOf(pem: string): readonly [X509Certificate, ...X509Certificate[]] | undefined {
  const blocks = pem.match(PEM) ?? [];
  if (blocks.length > MAX_CERTIFICATES) return undefined;
  try {
    const [first, ...others] = blocks.map((block) => new X509Certificate(block));
    return first && [first, ...others];
  } catch {
    return undefined;
  }
}

/**
 * Returns whether a chain of valid certificates leads from a certificate to one of the anchors. Each link is a CA
 * certificate among `issuers` that has signed the previous certificate.
 */
export function isTrusted(
  leaf: X509Certificate,
  issuers: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  nowMs: number,
): boolean {
  let current = leaf;
  let left = issuers.filter((issuer) => issuer.ca);
  while (isCurrent(current, nowMs)) {
    if (anchors.some((anchor) => isCurrent(anchor, nowMs) && hasIssued(anchor, current))) return true;
    const next = left.find((issuer) => hasIssued(issuer, current));
    if (!next) return false;
    left = left.filter((issuer) => issuer !== next);
    current = next;
  }
  return false;
}

function isCurrent({ validFromDate, validToDate }: X509Certificate, nowMs: number): boolean {
  return validFromDate.getTime() <= nowMs && nowMs <= validToDate.getTime();
}

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

let roots: readonly X509Certificate[] | undefined;

/** Returns the root certificates of Node and of the operating system. Read once. */
export function systemRoots(): readonly X509Certificate[] {
  roots ??= [...new Set([...getCACertificates('bundled'), ...getCACertificates('system')])].map(
    (pem) => new X509Certificate(pem),
  );
  return roots;
}
