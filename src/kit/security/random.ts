import { randomBytes, randomFillSync } from 'node:crypto';

/** Source of randomness, injected so that tests can use fixed values. */
export interface Random {
  /** Returns `bytes` bytes of entropy as base64url. Platform secrets use 32 bytes. */
  secret(bytes: number): string;
  /** Returns a UUID version 7. New UUIDs sort last, so that new rows are added at the end of an index. */
  uuid(): string;
  fraction(): number;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/**
 * Returns a function that takes random bytes from a pool. The pool is filled in large blocks, because system calls are
 * slow.
 */
function entropyPool(size = 4096): (count: number) => Uint8Array {
  const pool = new Uint8Array(size);
  let used = size;
  return (count) => {
    if (used + count > size) {
      randomFillSync(pool);
      used = 0;
    }
    used += count;
    return pool.subarray(used - count, used);
  };
}

/** Formats a UUID version 7 (RFC 9562): 48 bits of epoch milliseconds, then 74 random bits. */
function uuidV7(now: number, random: Uint8Array): string {
  const hex = (index: number): string => HEX[random[index]!]!;
  const time = now.toString(16).padStart(12, '0');
  const version = HEX[0x70 | (random[0]! & 0x0f)]! + hex(1);
  const variant = HEX[0x80 | (random[2]! & 0x3f)]! + hex(3);
  const tail = hex(4) + hex(5) + hex(6) + hex(7) + hex(8) + hex(9);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}-${tail}`;
}

export function systemRandom(now: () => number = Date.now): Random {
  const draw = entropyPool();
  return {
    secret: (bytes) => randomBytes(bytes).toString('base64url'),
    uuid: () => uuidV7(now(), draw(10)),
    fraction: Math.random,
  };
}
