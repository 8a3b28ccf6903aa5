import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonValue, KeyValueStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';
import { keyValueCommands, keyValueModel } from './key-value-model.ts';

/** What every driver of KeyValueStore does. */
export function describeKeyValue(name: string, open: OpenDriver<KeyValueStore>): void {
  describe(`key-value store: ${name}`, () => {
    test('all kinds of JSON values survive a restart', async () => {
      const { port, reopen } = await openFresh(open);
      const values: JsonValue[] = [
        null,
        true,
        0,
        -1.5,
        2 ** 53 - 1,
        '',
        'héllo \u{1F600} \u0000 \ud800',
        [],
        [1, [2, { a: null }]],
        { '': 1, a: { b: [] } },
      ];
      await times(values.length, (i) => port.set('s', `k${i}`, values[i]!));
      const reopened = await reopen();
      const read = await times(values.length, (i) => reopened.get('s', `k${i}`));
      expect(read).toEqual(values.map((value, i) => ({ key: `k${i}`, value, expiresAt: null })));
    });

    test('a value named like a prototype member is an ordinary value', async () => {
      const { port } = await openFresh(open);
      await port.set('s', '__proto__', JSON.parse('{"__proto__": 1}'));
      expect(JSON.stringify(await port.get('s', '__proto__'))).toContain('{"__proto__":1}');
      expect(await port.get('s', 'constructor')).toBeUndefined();
    });

    test('scopes are separate', async () => {
      const { port } = await openFresh(open);
      await port.set('a', 'b:c', 1);
      await port.set('a:b', 'c', 2);
      expect((await port.get('a', 'b:c'))?.value).toBe(1);
      expect((await port.get('a:b', 'c'))?.value).toBe(2);
      expect(await port.get('a', 'c')).toBeUndefined();
      expect(await port.scan('a', { prefix: '', limit: 10 })).toHaveLength(1);
      expect(await port.delete('a', 'c')).toBe(false);
    });

    test('an entry is not found from the millisecond of its expiry on', async () => {
      const { port, clock } = await openFresh(open);
      const expiresAt = clock.now() + 1000;
      await port.set('s', 'k', 1, 1000);
      clock.advance(999);
      expect(await port.get('s', 'k')).toEqual({ key: 'k', value: 1, expiresAt });
      clock.advance(1);
      expect(await port.get('s', 'k')).toBeUndefined();
      expect(await port.scan('s', { prefix: '', limit: 10 })).toEqual([]);
      expect(await port.delete('s', 'k')).toBe(false);
    });

    test('setting an entry again replaces its value and its TTL', async () => {
      const { port, clock } = await openFresh(open);
      await port.set('s', 'k', 1, 1000);
      await port.set('s', 'k', 2);
      clock.advance(5000);
      expect(await port.get('s', 'k')).toEqual({ key: 'k', value: 2, expiresAt: null });
    });

    test('the longest TTL stays an exact number', async () => {
      const { port } = await openFresh(open);
      await port.set('s', 'k', 1, Number.MAX_SAFE_INTEGER);
      expect((await port.get('s', 'k'))?.expiresAt).toBe(Number.MAX_SAFE_INTEGER);
    });

    test('one of a hundred concurrent setIfAbsent calls succeeds, and its value is kept', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const wrote = await times(100, (i) => (i % 2 ? port : other).setIfAbsent('s', 'k', i));
      expect(wrote.filter(Boolean)).toHaveLength(1);
      expect((await port.get('s', 'k'))?.value).toBe(wrote.indexOf(true));
    });

    test('setIfAbsent replaces an expired entry, but not a live one', async () => {
      const { port, clock } = await openFresh(open);
      expect(await port.setIfAbsent('s', 'k', 1, 1000)).toBe(true);
      clock.advance(999);
      expect(await port.setIfAbsent('s', 'k', 2, 1000)).toBe(false);
      clock.advance(1);
      expect(await port.setIfAbsent('s', 'k', 3, 1000)).toBe(true);
      expect((await port.get('s', 'k'))?.value).toBe(3);
    });

    test('delete reports whether the entry existed', async () => {
      const { port } = await openFresh(open);
      await port.set('s', 'k', 1);
      expect(await times(10, () => port.delete('s', 'k')).then((all) => all.filter(Boolean))).toHaveLength(1);
      expect(await port.get('s', 'k')).toBeUndefined();
    });

    describe('increment', () => {
      test('concurrent increments all count', async () => {
        const { port, second } = await openFresh(open);
        const other = await second();
        const seen = await times(100, (i) => (i % 2 ? port : other).increment('s', 'n', { by: 2 }));
        expect(seen.map(({ value }) => value).sort((a, b) => a - b)).toEqual(
          Array.from({ length: 100 }, (_, i) => 2 * i + 2),
        );
      });

      test('a window starts at the first increment and is not extended', async () => {
        const { port, clock } = await openFresh(open);
        const expiresAt = clock.now() + 1000;
        const hit = () => port.increment('s', 'n', { by: 1, windowMs: 1000 });
        expect(await hit()).toEqual({ value: 1, expiresAt });
        clock.advance(999);
        expect(await hit()).toEqual({ value: 2, expiresAt });
        clock.advance(1);
        expect(await hit()).toEqual({ value: 1, expiresAt: expiresAt + 1000 });
      });

      test('an increment keeps the TTL of an entry', async () => {
        const { port, clock } = await openFresh(open);
        await port.set('s', 'timed', 5, 1000);
        await port.set('s', 'lasting', 5);
        expect(await port.increment('s', 'timed', { by: -1 })).toEqual({
          value: 4,
          expiresAt: clock.now() + 1000,
        });
        expect(await port.increment('s', 'lasting', { by: 1, windowMs: 10 })).toEqual({
          value: 6,
          expiresAt: null,
        });
      });

      test('an increment rejects a value that is not a number, and a sum that is not exact', async () => {
        const { port } = await openFresh(open);
        await port.set('s', 'text', '1');
        await port.set('s', 'full', Number.MAX_SAFE_INTEGER);
        await expect(port.increment('s', 'text', { by: 1 })).rejects.toMatchObject({ code: 'CONFLICT' });
        await expect(port.increment('s', 'full', { by: 1 })).rejects.toMatchObject({ code: 'CONFLICT' });
        expect((await port.get('s', 'text'))?.value).toBe('1');
        expect((await port.get('s', 'full'))?.value).toBe(Number.MAX_SAFE_INTEGER);
      });

      test('a rejected increment does not affect concurrent writes', async () => {
        const { port } = await openFresh(open);
        await port.set('s', 'text', 'x');
        const results = await Promise.allSettled([
          port.set('s', 'before', 1),
          port.increment('s', 'text', { by: 1 }),
          port.increment('s', 'counter', { by: 1 }),
          port.set('s', 'after', 1),
        ]);
        expect(results.map(({ status }) => status)).toEqual([
          'fulfilled',
          'rejected',
          'fulfilled',
          'fulfilled',
        ]);
        const keys = (await port.scan('s', { prefix: '', limit: 10 })).map(({ key }) => key);
        expect(keys).toEqual(['after', 'before', 'counter', 'text']);
        expect((await port.get('s', 'counter'))?.value).toBe(1);
      });
    });

    describe('scan', () => {
      const ODD = [
        '%',
        '%a',
        '_',
        '_b',
        'a',
        'a%',
        'aB',
        'ab',
        'a\u{10FFFF}',
        'a\u{10FFFF}z',
        'b',
        'é',
        '\ud7ff',
        '\ue000',
        '\uffff',
        '\u{1F600}',
        '\u{10FFFF}',
        '\u{10FFFF}\u{10FFFF}',
      ];

      test('finds exactly the keys that start with the prefix, in code-point order', async () => {
        const { port } = await openFresh(open);
        const shuffled = [...ODD].reverse();
        await times(shuffled.length, (i) => port.set('s', shuffled[i]!, i));
        for (const prefix of ['', ...ODD, 'zzz', 'A']) {
          const found = await port.scan('s', { prefix, limit: 100 });
          expect(
            found.map(({ key }) => key),
            `prefix ${JSON.stringify(prefix)}`,
          ).toEqual(ODD.filter((key) => key.startsWith(prefix)));
        }
      });

      test('pages of a scan have neither gaps nor repetitions', async () => {
        const { port } = await openFresh(open);
        await times(ODD.length, (i) => port.set('s', ODD[i]!, i));
        const seen: string[] = [];
        for (let after: string | undefined; ; ) {
          const page = await port.scan('s', {
            prefix: '',
            limit: 4,
            ...(after === undefined ? {} : { after }),
          });
          seen.push(...page.map(({ key }) => key));
          if (page.length < 4) break;
          after = page.at(-1)!.key;
        }
        expect(seen).toEqual(ODD);
      });

      test('a scan accepts an `after` before, inside and behind the prefix', async () => {
        const { port } = await openFresh(open);
        await times(4, (i) => port.set('s', `p${i}`, i));
        const keys = async (after: string) =>
          (await port.scan('s', { prefix: 'p', after, limit: 9 })).map(({ key }) => key);
        expect(await keys('a')).toEqual(['p0', 'p1', 'p2', 'p3']);
        expect(await keys('p1')).toEqual(['p2', 'p3']);
        expect(await keys('p1x')).toEqual(['p2', 'p3']);
        expect(await keys('q')).toEqual([]);
      });
    });

    test('a sweep deletes only expired entries, in batches', async () => {
      const { port, clock } = await openFresh(open);
      await times(5, (i) => port.set('s', `old${i}`, i, 1000));
      await port.set('s', 'young', 1, 1001);
      await port.set('s', 'lasting', 1);
      expect(await port.sweep(10)).toBe(0);
      clock.advance(1000);
      expect([await port.sweep(3), await port.sweep(3), await port.sweep(3)]).toEqual([3, 2, 0]);
      expect((await port.scan('s', { prefix: '', limit: 9 })).map(({ key }) => key)).toEqual([
        'lasting',
        'young',
      ]);
    });

    test('two services that sweep at once delete each expired entry once', async () => {
      const { port, clock, second } = await openFresh(open);
      const other = await second();
      const scopes = ['a', 'b', 'c', 'd', 'e'];
      await times(500, (i) => port.set(scopes[i % 5]!, `k${i}`, i, 1 + ((i * 7) % 500)));
      clock.advance(500);
      const deleted: number[] = [];
      const sum = () => deleted.reduce((total, count) => total + count, 0);
      const sweepAll = async (store: KeyValueStore) => {
        for (let calls = 0; calls < 1000 && sum() < 500; calls++) deleted.push(await store.sweep(20));
      };
      await Promise.all([sweepAll(port), sweepAll(other)]);
      expect(sum()).toBe(500);
      expect([await port.sweep(10), await other.sweep(10)]).toEqual([0, 0]);
    });

    test('keys that a database would change are rejected', async () => {
      const { port } = await openFresh(open);
      for (const key of ['\ud800', 'a\udc00b', 'nul\0']) {
        const refused = { code: 'VALIDATION_ERROR' };
        await expect(port.set('s', key, 1)).rejects.toMatchObject(refused);
        await expect(port.set(key, 'k', 1)).rejects.toMatchObject(refused);
        await expect(port.setIfAbsent('s', key, 1)).rejects.toMatchObject(refused);
        await expect(port.increment('s', key, { by: 1 })).rejects.toMatchObject(refused);
        await expect(port.get('s', key)).rejects.toMatchObject(refused);
        await expect(port.delete('s', key)).rejects.toMatchObject(refused);
        await expect(port.scan('s', { prefix: key, limit: 1 })).rejects.toMatchObject(refused);
      }
    });

    test('random operations give the same results as a map with TTLs', async () => {
      await fc.assert(
        fc.asyncProperty(fc.commands(keyValueCommands, { maxCommands: 60 }), async (commands) => {
          const { port, clock } = await openFresh(open);
          await fc.asyncModelRun(() => ({ model: keyValueModel(clock), real: port }), commands);
        }),
        { numRuns: 25 },
      );
    });
  });
}
