import {
  createCipheriv,
  createDecipheriv,
  createHash,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** The platform's secrets, from the environment or `keys.json`. */
export interface KeyMaterial {
  /** Secret for signing JWTs, or null if none is configured. */
  jwtSecret: string | null;
  /**
   * Whether the secret was generated at the first start and stored in `keys.json`. The `production` profile rejects a
   * generated secret.
   */
  isJwtSecretGenerated?: boolean;
  /** Previous JWT secret, used only to verify tokens. */
  previousJwtSecret: string | null;
  internalSecret: string;
  /** Key for encryption at rest: 32 bytes as base64url. */
  masterKey: string;
  /** Earlier master keys, used only for decryption. */
  previousMasterKeys?: readonly string[];
}

/**
 * Encrypts small values at rest. `context` is authenticated, so that encrypted values cannot be swapped between rows.
 */
export interface Seal {
  seal(plain: string, context: string): string;
  open(sealed: string, context: string): string;
}

const SEAL_VERSION = 'v1';

/**
 * Creates a seal that uses AES-256-GCM. Encrypted values have the form `v1.<key id>.<iv><tag><text>`. The key id
 * distinguishes a wrong key from corrupted data.
 */
export function createSeal(masterKey: string, previous: readonly string[] = []): Seal {
  const keys = new Map([...previous, masterKey].map((text) => [masterKeyId(text), keyBytes(text)]));
  const keyId = masterKeyId(masterKey);
  const key = keyBytes(masterKey);
  return {
    seal(plain, context) {
      const iv = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
      const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      const packed = Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
      return `${SEAL_VERSION}.${keyId}.${packed}`;
    },
    open(sealed, context) {
      const [version, id, packed] = sealed.split('.');
      if (version !== SEAL_VERSION || !id || !packed) throw new Error('The value is not a sealed one.');
      const opening = keys.get(id);
      if (!opening)
        throw new Error(
          `No master key with id ${id}; known: ${[...keys.keys()].join(', ')}. Restore its keys.json, or set SVC_MASTER_KEY_PREVIOUS to that key and run svc keys rotate.`,
        );
      const bytes = Buffer.from(packed, 'base64url');
      const decipher = createDecipheriv('aes-256-gcm', opening, bytes.subarray(0, 12));
      decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
    },
  };
}

function keyBytes(masterKey: string): Buffer {
  if (isMasterKey(masterKey)) return Buffer.from(masterKey, 'base64url');
  throw new Error(
    'The master key must be 32 bytes in base64url. Unset SVC_MASTER_KEY to use the one in keys.json.',
  );
}

/** Returns true if the text is the base64url form of 32 bytes. */
export function isMasterKey(text: string): boolean {
  return Buffer.from(text, 'base64url').length === 32;
}

/** Returns the id of the master key that encrypted a value. */
export function sealingKeyId(sealed: string): string | undefined {
  return sealed.split('.')[1];
}

/** Returns the fingerprint of a master key, which does not reveal the key. */
export function masterKeyId(masterKey: string): string {
  const key = Buffer.from(masterKey, 'base64url');
  return createHash('sha256').update(key).digest('base64url').slice(0, 8);
}

/** Derives a key for one purpose. The secret cannot be recovered from the derived key. */
export function deriveKey(secret: string, purpose: string): string {
  return Buffer.from(hkdfSync('sha256', secret, 'svc', purpose, 32)).toString('base64url');
}

/** Returns the key with which services authenticate to each other. The key is derived from the internal secret. */
export function serviceKey(internalSecret: string): string {
  return deriveKey(internalSecret, 'service-identity');
}

/** Compares in constant time. Both values are hashed first, which also hides their length. */
export function safeEqual(left: string | Buffer, right: string | Buffer): boolean {
  const digest = (value: string | Buffer): Buffer => createHash('sha256').update(value).digest();
  return timingSafeEqual(digest(left), digest(right));
}
