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
 * Proof that a host holds the private key it registered: the gateway sends a nonce and the public half of a key pair
 * made for this connection, the host answers with an HMAC under the secret that only the two can compute. Neither a
 * stolen client secret nor a recorded answer connects: each connection has its own nonce and key pair.
 * @spec docs/security.md "Hosts"
 */

const LABEL = 'svc host hello v1';
const NONCE_BYTES = 32;

/** As sent to the host; 32 bytes each, in base64. */
export interface Challenge {
  nonce: string;
  publicKey: string;
}

export interface OpenChallenge extends Challenge {
  /** Whether `proof` was made with the private key of `hostPublicKey`, for this host and this challenge. */
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
      const shown = Buffer.from(proof, 'base64');
      let expected: Buffer;
      try {
        expected = digest(challenge, privateKey, publicKeyOf(hostPublicKey), hostId, hostPublicKey);
      } catch {
        // A registered key that is no point of the curve proves nothing.
        return false;
      }
      return shown.length === expected.length && timingSafeEqual(shown, expected);
    },
  };
}

/** The host's answer. Throws for a challenge whose key is none. */
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

/** `publicKey`: the 32 bytes; `privateKey`: PKCS#8; both in base64. */
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
