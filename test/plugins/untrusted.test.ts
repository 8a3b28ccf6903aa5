import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findOwnCostProblem } from '../../src/kit/data/json-cost.ts';
import { createTokenBucket } from '../../src/kit/limits/token-bucket.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { createLineReader } from '../../src/plugins/line-reader.ts';
import { resultFrame } from '../../src/plugins/runner/result.ts';
import { parseUntrusted } from '../../src/plugins/untrusted-json.ts';

test('lines are the same in whatever pieces their bytes arrive', () => {
  const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '));
  fc.assert(
    fc.property(
      fc.array(line),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
      (lines, sizes) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        const read: string[] = [];
        const reader = createLineReader(10_000, (text) => read.push(text));
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length]!;
          expect(reader.push(bytes.subarray(at, at + size))).toBe(true);
          at += size;
        }
        expect(read).toEqual(lines.filter((text) => text !== ''));
      },
    ),
  );
});

test('a line beyond the limit is refused, whole or in pieces', () => {
  const reader = () => createLineReader(10, () => {});
  expect(reader().push(Buffer.from('1234567890\n'))).toBe(true);
  expect(reader().push(Buffer.from('12345678901\n'))).toBe(false);
  expect(reader().push(Buffer.from('12345678901'))).toBe(false);
  const pieces = reader();
  expect([pieces.push(Buffer.from('123456')), pieces.push(Buffer.from('789012'))]).toEqual([true, false]);
});

test('a large line in single bytes costs no more than its bytes', () => {
  let length = 0;
  const reader = createLineReader(4_000_000, (text) => {
    length = text.length;
  });
  const byte = Buffer.from('x');
  for (let i = 0; i < 1_000_000; i++) reader.push(byte);
  reader.push(Buffer.from('\n'));
  expect(length).toBe(1_000_000);
});

test('untrusted JSON has no __proto__ key at any depth, however it is written', () => {
  const escaped = [...'__proto__'].map((char, at) => {
    const code = `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
    return `${'__proto__'.slice(0, at)}${code}${'__proto__'.slice(at + 1)}`;
  });
  for (const key of ['__proto__', ...escaped, '__prot\\u006F__']) {
    const value = parseUntrusted(`{"a": [{"${key}": {"admin": true}}], "${key}": 1, "b": "__proto__"}`);
    expect(JSON.stringify(value)).toBe('{"a":[{}],"b":"__proto__"}');
  }
});

test('untrusted JSON equals what JSON.parse gives for anything else', () => {
  const harmless = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__'));
  fc.assert(
    fc.property(harmless, (value) => {
      const text = JSON.stringify(value);
      expect(parseUntrusted(text)).toEqual(JSON.parse(text));
    }),
  );
});

test('JSON nested too deep is refused', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  expect(() => parseUntrusted(nested(512) + ' '.repeat(1000))).not.toThrow();
  expect(() => parseUntrusted(nested(513))).toThrow(/deeper than 512/);
});

test('a token bucket allows its burst, then its rate, and tells how long a debt takes', () => {
  const clock = manualClock();
  const bucket = createTokenBucket(clock, 10, 5);
  expect([1, 2, 3, 4, 5, 6].map(() => bucket.take(1))).toEqual([true, true, true, true, true, false]);
  clock.advance(100);
  expect([bucket.take(1), bucket.take(1)]).toEqual([true, false]);
  clock.advance(10_000);
  expect(bucket.spend(5)).toBe(0);
  expect(bucket.spend(20)).toBe(2000);
  clock.jump(0);
  expect(bucket.take(1)).toBe(false);
});

test('text of too many values is refused before it is parsed, whatever they are', () => {
  const list = (item: string, count: number) => `[${Array(count).fill(item).join(',')}]`;
  for (const item of ['[]', '{}', '1', '{"a":1}', '[[1]]'])
    expect(() => parseUntrusted(list(item, 600_000))).toThrow('JSON of more than 500000 values');
  expect(parseUntrusted(list('1', 400_000))).toHaveLength(400_000);
  const text = JSON.stringify([',[{'.repeat(1_000_000), '\\",'.repeat(100_000)]);
  expect(parseUntrusted(text)).toHaveLength(2);
});

test('text of too many new keys is refused before it is parsed, however they are spread over objects', () => {
  const objects = (count: number, keysOf: (index: number) => string[]) =>
    `[${Array.from(
      { length: count },
      (_, index) =>
        `{${keysOf(index)
          .map((key) => `"${key}":0`)
          .join()}}`,
    ).join()}]`;
  const keys = (count: number, prefix = 'k') =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  const refused = 'JSON of more than 50000 different keys';
  expect(() => parseUntrusted(objects(1, () => keys(70_000)))).toThrow(refused);
  expect(() => parseUntrusted(objects(70_000, (index) => [`k${index}`]))).toThrow(refused);
  expect(() => parseUntrusted(objects(3000, (index) => keys(30, `${index}_`)))).toThrow(refused);
  // Few keys, in ever new orders.
  expect(() =>
    parseUntrusted(
      objects(3000, (index) =>
        keys(40).map((_, at) => `k${(index * 7 + at * 13 + ((index * at) % 89)) % 997}`),
      ),
    ),
  ).toThrow(refused);
  expect(() => parseUntrusted(objects(70_000, (index) => [`\\u006b${index}`]))).toThrow(refused);

  expect(parseUntrusted(objects(1, () => keys(50_000)))).toHaveLength(1);
  expect(parseUntrusted(objects(40_000, () => keys(10)))).toHaveLength(40_000);
  expect(parseUntrusted(JSON.stringify(['"a":'.repeat(200_000)]))).toHaveLength(1);
});

test('text that is no JSON costs no more than its length', () => {
  const long = 'x'.repeat(1_000_000);
  for (const text of [
    `{"${long}"${':'.repeat(1_000_000)}`,
    `{"${long}\\`,
    `"${'\\'.repeat(1_000_001)}"${long}`,
  ])
    expect(() => parseUntrusted(text)).toThrow(SyntaxError);
});

test("a runner's own check is the stricter one, so that it tells what the daemon would not read", () => {
  const text = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0])));
  expect(findOwnCostProblem(text(49_000), 512)).toBeUndefined();
  expect(findOwnCostProblem(text(54_000), 512)).toBe('of more than 50000 different keys');
  expect(() => parseUntrusted(text(54_000))).not.toThrow();
});

test('a result of as many values as a runner lets pass is read with the frame around it', () => {
  const result = Array.from({ length: 499_996 }, () => 0);
  const frame = parseUntrusted(resultFrame('e', { exitCode: 0, result }, 6_000_000));
  expect(frame).toMatchObject({ type: 'result', executionId: 'e', result: { exitCode: 0 } });
});
