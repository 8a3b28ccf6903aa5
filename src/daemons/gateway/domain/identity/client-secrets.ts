import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

/** 16 MB and about 30 ms: what OWASP asks of scrypt with 8 blocks and 2^14. */
const COST = { N: 16384, r: 8, p: 1 };
const KEY_BYTES = 32;
const PREFIX = 'scrypt';

/** As stored: `scrypt$N$r$p$<salt>$<key>`; the parameters travel along so that they can be raised. */
export async function hashSecret(secret: string): Promise<string> {
  const salt = randomBytes(16);
  const key = await derive(secret, salt, COST);
  return [PREFIX, COST.N, COST.r, COST.p, salt.toString('base64url'), key.toString('base64url')].join('$');
}

/** What an unknown client's secret is checked against: takes as long as a real one and never matches. */
const NOBODY = [PREFIX, COST.N, COST.r, COST.p, 'AAAAAAAAAAAAAAAAAAAAAA', 'A'.repeat(43)].join('$');

/** Whether the secret is the hashed one; without a hash it takes the same time and says no, so that time does not tell which clients exist. */
export async function verifySecret(secret: string, hash: string | undefined): Promise<boolean> {
  const [prefix, N, r, p, salt, key] = (hash ?? NOBODY).split('$');
  if (prefix !== PREFIX || !salt || !key) return false;
  const expected = Buffer.from(key, 'base64url');
  const actual = await derive(secret, Buffer.from(salt, 'base64url'), {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  });
  return timingSafeEqual(actual, expected) && hash !== undefined;
}

function derive(secret: string, salt: Buffer, cost: typeof COST): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, KEY_BYTES, { ...cost, maxmem: 64 * 1024 * 1024 }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}
