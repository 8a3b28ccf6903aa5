import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  createSeal,
  deriveKey,
  masterKeyId,
  safeEqual,
  sealingKeyId,
  serviceKey,
} from '../../../src/kit/security/keys.ts';

const key = (): string => randomBytes(32).toString('base64url');

test('a sealed value opens with its key and its context alone', () => {
  const masterKey = key();
  const seal = createSeal(masterKey);
  const sealed = seal.seal('whsec', 'row 1');
  expect(sealed).not.toContain('whsec');
  expect(seal.open(sealed, 'row 1')).toBe('whsec');
  expect(() => seal.open(sealed, 'row 2')).toThrow();
  expect(() => createSeal(key()).open(sealed, 'row 1')).toThrow(/master key/);
  const last = sealed.at(-1) === 'A' ? 'B' : 'A';
  expect(() => seal.open(sealed.slice(0, -1) + last, 'row 1')).toThrow();
});

test('a master key of another length is refused with its remedy', () => {
  expect(() => createSeal('short')).toThrow(/SVC_MASTER_KEY/);
});

test('a previous key opens and seals nothing; an unknown one is named by its fingerprint', () => {
  const [old, current, lost] = [key(), key(), key()];
  const seal = createSeal(current, [old]);
  expect(seal.open(createSeal(old).seal('whsec', 'row'), 'row')).toBe('whsec');
  expect(sealingKeyId(seal.seal('whsec', 'row'))).toBe(masterKeyId(current));
  const unknown = createSeal(lost).seal('whsec', 'row');
  expect(() => seal.open(unknown, 'row')).toThrow(`No master key with id ${masterKeyId(lost)}`);
  expect(() => seal.open('plain', 'row')).toThrow();
});

test('derived keys differ by purpose and secret, and the service key is not the internal secret', () => {
  expect(deriveKey('s', 'a')).not.toBe(deriveKey('s', 'b'));
  expect(deriveKey('s', 'a')).not.toBe(deriveKey('t', 'a'));
  expect(serviceKey('internal')).not.toContain('internal');
});

test('safeEqual compares text of any length', () => {
  expect(safeEqual('abc', 'abc')).toBe(true);
  expect(safeEqual('abc', 'abcd')).toBe(false);
  expect(safeEqual('', 'a')).toBe(false);
});
