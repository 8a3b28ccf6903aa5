import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { SECRET_COST } from './secret-cost.ts';

const KEY_BYTES = 32;
/** Hash prefix of the current scheme, which is scrypt of the secret's SHA-256 digest. */
const PREFIX = 'scrypt-sha256';
/**
 * Hash prefix of the outdated scheme, which uses scrypt of the secret itself. scrypt pads the secret with NUL bytes, so
 * `secret` and `secret\0` have the same hash.
 */
const LEGACY_PREFIX = 'scrypt';

/**
 * Returns `scrypt-sha256$N$r$p$<salt>$<key>`. The hash contains its cost parameters, so that later versions can raise
 * the parameters.
 */
export async function hashSecret(secret: string): Promise<string> {
  const salt = randomBytes(16);
  const key = await derive(digestOf(secret), salt, SECRET_COST);
  const { N, r, p } = SECRET_COST;
  return [PREFIX, N, r, p, salt.toString('base64url'), key.toString('base64url')].join('$');
}

/** Hash for unknown clients. Verifying this hash takes as long as verifying a real hash, and never succeeds. */
const DUMMY_HASH = [PREFIX, SECRET_COST.N, SECRET_COST.r, SECRET_COST.p, 'A'.repeat(22), 'A'.repeat(43)].join(
  '$',
);

/**
 * Verifies a secret. If `hash` is undefined, returns false after the same time, so that the timing does not reveal
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

/** Returns whether the hash uses the outdated scheme. Such a hash is replaced when the secret is used. */
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
