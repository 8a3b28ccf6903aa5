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
  /** Signs JWTs; null means none was given. */
  jwtSecret: string | null;
  /** It was not given: it is the one that the first start wrote to `keys.json`. Production refuses it. */
  isJwtSecretGenerated?: boolean;
  /** Still accepted for verification. */
  previousJwtSecret: string | null;
  internalSecret: string;
  /** 32 bytes, base64url. */
  masterKey: string;
}

/** Encrypts small values at rest. `seal` binds the value to its `context`, so that rows cannot be swapped. */
export interface Seal {
  seal(plain: string, context: string): string;
  open(sealed: string, context: string): string;
}

const SEAL_VERSION = 'v1';

/** AES-256-GCM; the result names its key, so that another one is told from damage: `v1.<key id>.<iv><tag><text>`. */
export function createSeal(masterKey: string): Seal {
  const key = Buffer.from(masterKey, 'base64url');
  if (key.length !== 32)
    throw new Error(
      'The master key must be 32 bytes in base64url; unset SVC_MASTER_KEY to use the one in keys.json.',
    );
  const keyId = masterKeyId(masterKey);
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
      if (version !== SEAL_VERSION || id !== keyId || !packed)
        throw new Error(
          `No master key with id ${id}: restore the keys.json or SVC_MASTER_KEY that sealed this.`,
        );
      const bytes = Buffer.from(packed, 'base64url');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
      decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
    },
  };
}

/** The id of the master key that sealed it. */
export function sealingKeyId(sealed: string): string | undefined {
  return sealed.split('.')[1];
}

/** Names a master key without telling it. */
export function masterKeyId(masterKey: string): string {
  const key = Buffer.from(masterKey, 'base64url');
  return createHash('sha256').update(key).digest('base64url').slice(0, 8);
}

/** A key for one purpose, from which the secret itself cannot be had back. */
export function deriveKey(secret: string, purpose: string): string {
  return Buffer.from(hkdfSync('sha256', secret, 'svc', purpose, 32)).toString('base64url');
}

/** What daemons show each other. Derived, so that a holder of the internal secret's service key cannot dispatch, nor the other way round. */
export function serviceKey(internalSecret: string): string {
  return deriveKey(internalSecret, 'service-identity');
}

/** Compares in a time that tells neither content nor length: both sides are hashed to one length first. */
export function safeEqual(left: string | Buffer, right: string | Buffer): boolean {
  const digest = (value: string | Buffer): Buffer => createHash('sha256').update(value).digest();
  return timingSafeEqual(digest(left), digest(right));
}
