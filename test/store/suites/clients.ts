import { describe, expect, test } from 'vitest';
import type { ClientRecord, ClientStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const CLIENT: ClientRecord = {
  clientId: 'client_1',
  hostId: 'host_1',
  namespaceId: 'acme',
  name: 'ci',
  secretHash: 'scrypt$1',
  createdAt: 10,
  revokedAt: null,
};

/** What every driver of ClientStore does. @spec Client credentials and token pair */
export function describeClients(name: string, open: OpenDriver<ClientStore>): void {
  describe(`clients: ${name}`, () => {
    test('a client is stored as it was created and survives a restart', async () => {
      const { port, reopen } = await openFresh(open);
      await port.create(CLIENT);
      expect(await port.find('client_2')).toBeUndefined();
      expect(await (await reopen()).find('client_1')).toEqual(CLIENT);
    });

    test('a client id can be used only once', async () => {
      const { port } = await openFresh(open);
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, i) => port.create({ ...CLIENT, name: `n${i}` })),
      );
      const refused = results.filter((result) => result.status === 'rejected');
      expect(refused).toHaveLength(9);
      expect(refused[0]!.reason).toMatchObject({ code: 'CONFLICT' });
    });

    test('upsert replaces the secret and identity and keeps the time of creation', async () => {
      const { port } = await openFresh(open);
      await port.upsert(CLIENT);
      await port.revoke('client_1', 20);
      await port.upsert({ ...CLIENT, secretHash: 'scrypt$2', namespaceId: 'other', createdAt: 99 });
      expect(await port.find('client_1')).toEqual({
        ...CLIENT,
        secretHash: 'scrypt$2',
        namespaceId: 'other',
      });
    });

    test('a hash is replaced only if it has not changed since it was read', async () => {
      const { port } = await openFresh(open);
      await port.create(CLIENT);
      await port.rehash('client_1', 'scrypt$1', 'scrypt$2');
      await port.rehash('client_1', 'scrypt$1', 'scrypt$3');
      expect(await port.find('client_1')).toEqual({ ...CLIENT, secretHash: 'scrypt$2' });
    });

    test('clients of one namespace or of all are listed in order of creation', async () => {
      const { port } = await openFresh(open);
      await port.create({ ...CLIENT, clientId: 'b', createdAt: 2 });
      await port.create({ ...CLIENT, clientId: 'a', createdAt: 2, namespaceId: 'other' });
      await port.create({ ...CLIENT, clientId: 'c', createdAt: 1 });
      expect((await port.list()).map(({ clientId }) => clientId)).toEqual(['c', 'a', 'b']);
      expect((await port.list('other')).map(({ clientId }) => clientId)).toEqual(['a']);
      expect(await port.list('nobody')).toEqual([]);
    });

    test('a client is revoked once, at the given time', async () => {
      const { port } = await openFresh(open);
      await port.create(CLIENT);
      const revoked = await times(5, (i) => port.revoke('client_1', 100 + i));
      expect(revoked.filter(Boolean)).toHaveLength(1);
      expect((await port.find('client_1'))?.revokedAt).toBe(100 + revoked.indexOf(true));
      expect(await port.revoke('client_2', 1)).toBe(false);
    });
  });
}
