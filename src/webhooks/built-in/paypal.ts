import { type KeyObject, verify, X509Certificate } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { BuiltInVerifier } from '../schemes/built-in.ts';
import { decode } from '../schemes/encoding.ts';
import { HeaderPlace } from '../schemes/place.ts';
import type { SignatureFault, SignedRequest } from '../schemes/signed-request.ts';
import { certificatesOf, isTrusted, systemRoots } from './certificate-chain.ts';
import { PAYPAL_ISSUERS } from './paypal-issuers.ts';

/** Hosts that serve certificates, with the name that their certificates must have. */
const CERTIFICATE_NAMES: ReadonlyMap<string, string> = new Map([
  ['api.paypal.com', 'messageverificationcerts.paypal.com'],
  ['api-m.paypal.com', 'messageverificationcerts.paypal.com'],
  ['api.sandbox.paypal.com', 'messageverificationcerts.sandbox.paypal.com'],
  ['api-m.sandbox.paypal.com', 'messageverificationcerts.sandbox.paypal.com'],
]);
const CERTIFICATE_URL = /^https:\/\/([a-z.-]+)\/v1\/notifications\/certs\/[A-Za-z0-9-]{1,100}$/;
const ALGORITHM = 'sha256withrsa';

const PLACES = {
  id: new HeaderPlace('paypal-transmission-id'),
  time: new HeaderPlace('paypal-transmission-time'),
  signature: new HeaderPlace('paypal-transmission-sig'),
  certificateUrl: new HeaderPlace('paypal-cert-url'),
  algorithm: new HeaderPlace('paypal-auth-algo'),
};

type Sent = Record<keyof typeof PLACES, string>;

/**
 * Verifies a delivery of PayPal: RSA-SHA256 over id, time, webhook id and CRC-32 of the body, with the key of a
 * certificate that PayPal serves. The secret is the webhook id. https://developer.paypal.com/api/rest/webhooks/rest/
 */
export const verifyPayPal: BuiltInVerifier = async (request, secret, { nowMs, fetchText }) => {
  const sent = read(request);
  if (typeof sent === 'string') return sent;
  const signature = decode(sent.signature, 'base64');
  if (!signature) return 'encoding';
  if (sent.algorithm.toLowerCase() !== ALGORITHM) return 'key_format';
  // The header chooses the key, so any other host could verify a forged delivery.
  const name = certificateNameOf(sent.certificateUrl);
  if (name === undefined) return 'key_format';
  const key = signingKeyOf(await fetchText(sent.certificateUrl), name, nowMs);
  if (!key) return 'key_format';
  const message = `${sent.id}|${sent.time}|${secret.trim()}|${crc32(request.body)}`;
  return verify('sha256', Buffer.from(message), key, signature);
};

function read(request: SignedRequest): Sent | SignatureFault {
  const sent: Partial<Sent> = {};
  for (const name of Object.keys(PLACES) as Array<keyof Sent>) {
    const { text, fault } = PLACES[name].read(request);
    if (text === undefined) return fault;
    sent[name] = text;
  }
  return sent as Sent;
}

function certificateNameOf(url: string): string | undefined {
  const [, host] = CERTIFICATE_URL.exec(url) ?? [];
  return host === undefined ? undefined : CERTIFICATE_NAMES.get(host);
}

/** Returns the public key of a certificate file, unless the certificate is not PayPal's, not valid now, or not trusted. */
function signingKeyOf(pem: string, name: string, nowMs: number): KeyObject | undefined {
  const [leaf, ...issuers] = certificatesOf(pem) ?? [];
  if (!leaf || leaf.checkHost(name, { wildcards: false }) === undefined) return undefined;
  if (!isTrusted(leaf, issuers, anchors(), nowMs)) return undefined;
  return leaf.publicKey.asymmetricKeyType === 'rsa' ? leaf.publicKey : undefined;
}

let known: readonly X509Certificate[] | undefined;

function anchors(): readonly X509Certificate[] {
  known ??= [...PAYPAL_ISSUERS.map((pem) => new X509Certificate(pem)), ...systemRoots()];
  return known;
}
