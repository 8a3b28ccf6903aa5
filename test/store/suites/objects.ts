import { describe, expect, test } from 'vitest';
import type { ObjectScope, ObjectStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const ACME: ObjectScope = { tenant: 'acme', namespace: 'plugin:@acme/orders' };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (data: Uint8Array | undefined): string => Buffer.from(data ?? []).toString();

/** What every driver of ObjectStore does. */
export function describeObjects(name: string, open: OpenDriver<ObjectStore>): void {
  describe(`object store: ${name}`, () => {
    test('objects survive a restart', async () => {
      const { port, reopen } = await openFresh(open);
      const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);
      await port.write(ACME, 'bytes', everyByte);
      await port.write(ACME, 'empty', new Uint8Array());
      const again = await reopen();
      const found = await again.read(ACME, 'bytes');
      expect(Buffer.from(found!.data)).toEqual(Buffer.from(everyByte));
      expect(found).toMatchObject({ key: 'bytes', bytes: 256, modifiedAt: expect.any(Number) });
      expect(await again.read(ACME, 'empty')).toMatchObject({ bytes: 0 });
      expect(await again.read(ACME, 'absent')).toBeUndefined();
    });

    test('a write replaces an object, and a delete reports whether the object existed', async () => {
      const { port } = await openFresh(open);
      await port.write(ACME, 'a', bytes('first'));
      await port.write(ACME, 'a', bytes('second, longer'));
      expect(textOf((await port.read(ACME, 'a'))?.data)).toBe('second, longer');
      expect(await port.stat(ACME, 'a')).toMatchObject({ key: 'a', bytes: 14 });
      expect([await port.delete(ACME, 'a'), await port.delete(ACME, 'a')]).toEqual([true, false]);
      expect(await port.stat(ACME, 'a')).toBeUndefined();
    });

    test('a key may be a prefix of another key and contain any character', async () => {
      const { port } = await openFresh(open);
      const keys = [
        'a',
        'a/b',
        'a/b/c',
        'A',
        'with space',
        'per%cent',
        'plus+&?=#',
        "quote'(*)!",
        'ünï/日本',
        '\u{1F600}',
      ];
      await times(keys.length, (index) => port.write(ACME, keys[index]!, bytes(keys[index]!)));
      const read = await times(keys.length, async (index) =>
        textOf((await port.read(ACME, keys[index]!))?.data),
      );
      expect(read).toEqual(keys);
    });

    test('objects are invisible to other tenants and plugins', async () => {
      const { port } = await openFresh(open);
      const others = [
        { tenant: 'other', namespace: ACME.namespace },
        { tenant: 'acme', namespace: 'plugin:@acme/order' },
        { tenant: 'acme', namespace: 'plugin:@acme/orders/x' },
      ];
      await port.write(ACME, 'key', bytes('mine'));
      for (const scope of others) {
        expect(await port.read(scope, 'key')).toBeUndefined();
        expect(await port.list(scope, { prefix: '', limit: 10 })).toEqual([]);
        expect(await port.delete(scope, 'key')).toBe(false);
      }
      expect(textOf((await port.read(ACME, 'key'))?.data)).toBe('mine');
    });

    test('a list has the keys with a prefix in byte order, and continues after a key', async () => {
      const { port } = await openFresh(open);
      const keys = ['a/1', 'a/10', 'a/2', 'ab', 'b/1', 'a/\u{1F600}', 'a/\uffee'];
      for (const key of keys) await port.write(ACME, key, bytes('x'));
      const list = async (options: { prefix: string; after?: string; limit: number }) =>
        (await port.list(ACME, options)).map(({ key }) => key);
      expect(await list({ prefix: 'a/', limit: 10 })).toEqual([
        'a/1',
        'a/10',
        'a/2',
        'a/\uffee',
        'a/\u{1F600}',
      ]);
      expect(await list({ prefix: 'a/', after: 'a/10', limit: 1 })).toEqual(['a/2']);
      expect(await list({ prefix: '', after: 'a/\u{1F600}', limit: 10 })).toEqual(['ab', 'b/1']);
    });

    test('readers of an object during its replacement get either the old or the new bytes', async () => {
      const { port } = await openFresh(open);
      const versions = ['a', 'b'].map((letter) => letter.repeat(20_000));
      await port.write(ACME, 'key', bytes(versions[0]!));
      const writing = times(10, (index) => port.write(ACME, 'key', bytes(versions[index % 2]!)));
      const read = await times(30, async () => textOf((await port.read(ACME, 'key'))?.data));
      await writing;
      for (const text of read) expect(versions).toContain(text);
    });
  });
}
