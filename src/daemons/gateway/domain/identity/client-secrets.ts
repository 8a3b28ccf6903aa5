import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { SECRET_COST } from './secret-cost.ts';

const KEY_BYTES = 32;
/** scrypt of the secret's SHA-256. */
const PREFIX = 'scrypt-sha256';
/**
 * scrypt of the secret itself, an outdated scheme: scrypt keys an HMAC, which pads short keys with NUL bytes,
 * so `secret` and `secret\0` match alike.
 */
const LEGACY_PREFIX = 'scrypt';

/** Stored as `scrypt-sha256$N$r$p$<salt>$<key>`, with the parameters, so that they can be raised. */
export async function hashSecret(secret: string): Promise<string> {
  const salt = randomBytes(16);
  const key = await derive(digestOf(secret), salt, SECRET_COST);
  const { N, r, p } = SECRET_COST;
  return [PREFIX, N, r, p, salt.toString('base64url'), key.toString('base64url')].join('$');
}

/** Dummy hash for unknown clients: verification takes as long as a real one and never matches. */
const DUMMY_HASH = [PREFIX, SECRET_COST.N, SECRET_COST.r, SECRET_COST.p, 'A'.repeat(22), 'A'.repeat(43)].join(
  '$',
);

/**
 * Verifies a secret. Without a hash it takes the same time and returns false, so that timing does not reveal
 * which clients exist.
 */
export async function verifySecret(secret: string, hash: string | undefined): Promise<boolean> {
  const [prefix, N, r, p, salt, key] = (hash ?? DUMMY_HASH).split('$');
  const isLegacy = prefix === LEGACY_PREFIX;
  if ((prefix !== PREFIX && !isLegacy) || !salt || !key) return false;
  const expected = Buffer.from(key, 'base64url');
  const actual = await derive(isLegacy ? secret : digestOf(secret), Buffer.from(salt, 'base64url'), {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  });
  const isPadded = isLegacy && secret.endsWith('\0');
  return timingSafeEqual(actual, expected) && hash !== undefined && !isPadded;
}

/** Whether the hash uses the outdated scheme; it is replaced at its next use. */
export function isOutdated(hash: string): boolean {
  return !hash.startsWith(`${PREFIX}$`);
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

function derive(secret: string | Buffer, salt: Buffer, cost: typeof SECRET_COST): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, KEY_BYTES, { ...cost, maxmem: 64 * 1024 * 1024 }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}
