import { expect, test } from 'vitest';
import { systemRandom } from '../../../src/kit/security/random.ts';

test('uuids are version 7, unique, and ordered by their time', () => {
  let now = 1_700_000_000_000;
  const random = systemRandom(() => now);
  const ids = Array.from({ length: 5000 }, () => {
    now++;
    return random.uuid();
  });
  expect(new Set(ids).size).toBe(ids.length);
  expect([...ids].sort()).toEqual(ids);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('a secret of 32 bytes has 256 bits in URL-safe text', () => {
  const secret = systemRandom().secret(32);
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(systemRandom().secret(32)).not.toBe(secret);
});
