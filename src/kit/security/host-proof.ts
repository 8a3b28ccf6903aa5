import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/**
 * Proves that a host has the private key of its registered public key. The host answers a nonce and an ephemeral public
 * key with an HMAC keyed by the shared secret. New values per connection prevent replays. @spec
 * docs/security.md "Hosts"
 */

const LABEL = 'svc host hello v1';
const NONCE_BYTES = 32;

/** The challenge that the gateway sends to the host. Each field is 32 bytes in base64. */
export interface Challenge {
  nonce: string;
  publicKey: string;
}

export interface OpenChallenge extends Challenge {
  /** Returns true if `proof` was made with the private key of `hostPublicKey`, for this host and challenge. */
  accepts(proof: string, hostId: string, hostPublicKey: string): boolean;
}

export function createChallenge(): OpenChallenge {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const challenge = {
    nonce: randomBytes(NONCE_BYTES).toString('base64'),
    publicKey: rawPublicKey(publicKey),
  };
  return {
    ...challenge,
    accepts(proof, hostId, hostPublicKey) {
      const received = Buffer.from(proof, 'base64');
      let expected: Buffer;
      try {
        expected = digest(challenge, privateKey, publicKeyOf(hostPublicKey), hostId, hostPublicKey);
      } catch {
        // The registered key is not a valid curve point.
        return false;
      }
      return received.length === expected.length && timingSafeEqual(received, expected);
    },
  };
}

/** Computes the host's response to a challenge. Throws if the public key in the challenge is invalid. */
export function answerChallenge(challenge: Challenge, keys: HostKeys, hostId: string): string {
  const privateKey = createPrivateKey({
    key: Buffer.from(keys.privateKey, 'base64'),
    format: 'der',
    type: 'pkcs8',
  });
  return digest(challenge, privateKey, publicKeyOf(challenge.publicKey), hostId, keys.publicKey).toString(
    'base64',
  );
}

/** X25519 key pair in base64. `publicKey` is the raw key of 32 bytes, and `privateKey` is in PKCS#8 format. */
export interface HostKeys {
  publicKey: string;
  privateKey: string;
}

export function createHostKeys(): HostKeys {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return {
    publicKey: rawPublicKey(publicKey),
    privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
  };
}

function digest(
  { nonce, publicKey }: Challenge,
  own: KeyObject,
  other: KeyObject,
  hostId: string,
  hostPublicKey: string,
): Buffer {
  const shared = diffieHellman({ privateKey: own, publicKey: other });
  const key = Buffer.from(hkdfSync('sha256', shared, Buffer.from(nonce, 'base64'), LABEL, 32));
  return createHmac('sha256', key)
    .update([LABEL, hostId, nonce, publicKey, hostPublicKey].join('\n'))
    .digest();
}

function rawPublicKey(key: KeyObject): string {
  return Buffer.from(key.export({ format: 'jwk' }).x!, 'base64url').toString('base64');
}

function publicKeyOf(raw: string): KeyObject {
  const x = Buffer.from(raw, 'base64').toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' });
}
