import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { SecretMatcher } from '../../../src/kit/telemetry/secret-matcher.ts';

const MASK = '[redacted]';
const masked = (values: string[], text: string) => new SecretMatcher(values, MASK).mask(text);

const VALUES = {
  'a key': 'kR8-mYp_w2.Zq7',
  'regular expression syntax': '^(a+)+$|[x]{2}\\d.*?/',
  'quotes and newlines': `one "two" 'three' \`four\`\nfive\tsix\\seven`,
  unicode: 'pässwörd-🔑-ключ',
  digits: '4711081512345678',
  'a URL': 'postgres://user:p%40ss@db.example/x?y=1&z=2',
  '64 KB':
    randomBytes(24 * 1024)
      .toString('base64')
      .slice(0, 32 * 1024) + 'é'.repeat(16 * 1024),
};

const FORMS: Record<string, (value: string) => string> = {
  raw: (value) => value,
  JSON: (value) => JSON.stringify({ value }),
  'JSON in JSON': (value) => JSON.stringify(JSON.stringify({ value })),
  'ASCII JSON': (value) =>
    JSON.stringify(value).replace(
      /[^\x20-\x7e]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  inspect: (value) => inspect(value),
  base64: (value) => Buffer.from(value).toString('base64'),
  'base64, one byte before': (value) => Buffer.from(`a${value}`).toString('base64'),
  'base64, two bytes before': (value) => Buffer.from(`ab${value}`).toString('base64'),
  'basic authentication': (value) => Buffer.from(`user:${value}`).toString('base64'),
  base64url: (value) => Buffer.from(`abcd${value}`).toString('base64url'),
  hex: (value) => Buffer.from(value).toString('hex'),
  HEX: (value) => Buffer.from(value).toString('hex').toUpperCase(),
  URL: (value) => encodeURIComponent(value),
  'lower-case URL': (value) =>
    encodeURIComponent(value).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  form: (value) => new URLSearchParams({ q: value }).toString(),
};

for (const [kind, value] of Object.entries(VALUES))
  test.each(Object.keys(FORMS))(`a value with ${kind} is masked as %s`, (form) => {
    const text = FORMS[form]!(value);
    const shown = masked([value], `before ${text} after`);
    expect(shown).toContain(MASK);
    expect(shown).toMatch(/^before .* after$/s);
    // At most the first and last group of base64 and the name of a form field stay.
    expect(shown.length).toBeLessThan('before  after'.length + MASK.length + 24);
  });

test('texts without a value stay as they are', () => {
  const text = 'nothing of interest, [redacted] or otherwise';
  expect(masked(['kR8-mYp_w2'], text)).toBe(text);
  expect(masked([], text)).toBe(text);
  expect(masked(['short'], 'short')).toBe('short');
});

test('of values that contain or overlap each other all characters are masked', () => {
  expect(masked(['abcdefgh', 'xxabcdefghyy'], '-xxabcdefghyy-abcdefgh-')).toBe(`-${MASK}-${MASK}-`);
  expect(masked(['12345678AB', '78ABcdefgh'], '12345678ABcdefgh!')).toBe(`${MASK}!`);
  expect(masked(['abcdefgh'], 'abcdefghabcdefgh')).toBe(MASK);
});

test('a value that was cut off is masked', () => {
  const value = randomBytes(3000).toString('base64');
  expect(masked([value], value.slice(0, 4000 - 7))).toBe(MASK);
  expect(masked([value], `${value.slice(0, 100)}… [3900 more characters]`)).toBe(
    `${MASK}… [3900 more characters]`,
  );
  expect(masked(['kR8-mYp_w2.Zq7-longer'], 'failed: kR8-mYp_w2.Zq7…')).toBe(`failed: ${MASK}…`);
});

test('lines of a multi-line value are masked one by one', () => {
  const lines = Array.from({ length: 4 }, () => randomBytes(48).toString('base64'));
  const key = ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----'].join('\n');
  const shown = masked([key], inspect({ lines }));
  for (const line of lines) expect(shown).not.toContain(line);
});

test('repetitive texts and values take linear time', () => {
  const matcher = new SecretMatcher([`${'a'.repeat(60_000)}b`, 'a'.repeat(50_000), 'a'.repeat(9)], MASK);
  const startedAt = performance.now();
  expect(matcher.mask('a'.repeat(2_000_000)).length).toBeLessThan(100);
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});
