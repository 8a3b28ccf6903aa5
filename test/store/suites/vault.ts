import { describe, expect, test } from 'vitest';
import type { NewVaultVersion, VaultStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const KEY = { namespaceId: 'acme', name: 'API_KEY' };

/** What every driver of VaultStore does. @spec docs/secrets.md */
export function describeVault(name: string, open: OpenDriver<VaultStore>): void {
  describe(`secrets of tenants: ${name}`, () => {
    const next = (version: number, more: Partial<NewVaultVersion> = {}): NewVaultVersion => ({
      ...KEY,
      ...{ version, sealed: `v1.key.${version}`, createdAt: version, createdBy: 'ops', expiresAt: null },
      ...more,
    });

    test('only the newest version has a value, and the newest few stay listed, also after a restart', async () => {
      const { port, reopen } = await openFresh(open);
      expect(await port.find(KEY)).toBeUndefined();
      for (let version = 1; version <= 5; version++) expect(await port.add(next(version), 3)).toBe(true);
      const again = await reopen();
      expect(await again.find(KEY)).toEqual({ ...next(5), lastUsedAt: null });
      const listed = await again.list('acme');
      expect(listed.map(({ version }) => version)).toEqual([5, 4, 3]);
      expect(listed[1]).toEqual({
        ...KEY,
        ...{ version: 4, createdAt: 4, createdBy: 'ops', expiresAt: null, lastUsedAt: null },
      });
    });

    test('of concurrent callers one adds a version', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const added = await times(20, (i) =>
        (i % 2 ? port : other).add(next(1, { sealed: `v1.key.${i}`, createdBy: `c${i}` }), 3),
      );
      expect(added.filter(Boolean)).toHaveLength(1);
      const winner = added.indexOf(true);
      expect(await port.find(KEY)).toMatchObject({ sealed: `v1.key.${winner}`, createdBy: `c${winner}` });
    });

    test('namespaces and names are separate, and names of JavaScript are ordinary', async () => {
      const { port } = await openFresh(open);
      const keys = [KEY, { ...KEY, namespaceId: 'other' }, { ...KEY, name: '__proto__' }];
      for (const [i, key] of keys.entries()) await port.add(next(1, { ...key, sealed: `v1.k.${i}` }), 3);
      expect(await Promise.all(keys.map(async (key) => (await port.find(key))?.sealed))).toEqual([
        'v1.k.0',
        'v1.k.1',
        'v1.k.2',
      ]);
      expect((await port.list('acme')).map((version) => version.name)).toEqual(['API_KEY', '__proto__']);
      expect(await port.revoke(keys[1]!)).toBe(true);
      expect(await port.find(KEY)).toBeDefined();
    });

    test('revoking deletes every version, once', async () => {
      const { port } = await openFresh(open);
      await port.add(next(1), 3);
      await port.add(next(2), 3);
      expect((await times(5, () => port.revoke({ ...KEY, ...{ extra: 1 } }))).filter(Boolean)).toHaveLength(
        1,
      );
      expect(await port.find(KEY)).toBeUndefined();
      expect(await port.list('acme')).toEqual([]);
    });

    test('the last use belongs to a version and does not move back', async () => {
      const { port } = await openFresh(open);
      await port.add(next(1), 3);
      await port.used({ ...KEY, version: 1 }, 500);
      await port.used({ ...KEY, version: 1 }, 400);
      expect((await port.find(KEY))?.lastUsedAt).toBe(500);
      await port.add(next(2), 3);
      expect((await port.list('acme')).map(({ lastUsedAt }) => lastUsedAt)).toEqual([null, 500]);
    });

    test('secrets that expire are found over all namespaces, by their newest version', async () => {
      const { port } = await openFresh(open);
      await port.add(next(1, { expiresAt: 10 }), 3);
      await port.add(next(2, { expiresAt: 300 }), 3);
      await port.add(next(1, { namespaceId: 'b', expiresAt: 200 }), 3);
      await port.add(next(1, { namespaceId: 'c' }), 3);
      const found = async (before: number, limit = 10) =>
        (await port.expiring(before, limit)).map(({ namespaceId, expiresAt }) => [namespaceId, expiresAt]);
      expect(await found(1000)).toEqual([
        ['b', 200],
        ['acme', 300],
      ]);
      expect(await found(1000, 1)).toEqual([['b', 200]]);
      expect(await found(200)).toEqual([]);
    });
  });
}
