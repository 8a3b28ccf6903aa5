import { describe, expect, test } from 'vitest';
import { minutes } from '../../../src/kit/time/duration.ts';
import type { ConnectionRecord, ConnectionState, ConnectionStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const STATE: ConnectionState = {
  status: 'active',
  sealedTokens: 'v1.k.tokens',
  grantedScopes: '["read"]',
  account: 'ada@example.com',
  authorizedAt: 20,
  expiresAt: 1000,
  refreshAt: 800,
  lastRefreshedAt: null,
  lastError: null,
  failures: 0,
};

const NEW: ConnectionRecord = {
  namespaceId: 'acme',
  name: 'crm',
  id: 'id-1',
  settings: '{}',
  sealedSecret: 'v1.k.secret',
  createdAt: 10,
  ...STATE,
  status: 'pending',
  sealedTokens: null,
  grantedScopes: null,
  account: null,
  authorizedAt: null,
  expiresAt: null,
  refreshAt: null,
};

const LEASE_MS = minutes(1);

/** What every driver of ConnectionStore does. @spec docs/connections.md */
export function describeConnections(name: string, open: OpenDriver<ConnectionStore>): void {
  describe(`connections: ${name}`, () => {
    test('a connection is stored once per name and namespace, and survives a restart', async () => {
      const { port, reopen } = await openFresh(open);
      const made = await times(5, (n) => port.create({ ...NEW, id: `id-${n}` }));
      expect(made.filter(Boolean)).toHaveLength(1);
      const id = `id-${made.indexOf(true)}`;
      expect(await port.create({ ...NEW, namespaceId: 'other', name: 'crm' })).toBe(true);
      expect(await port.create({ ...NEW, name: 'blog' })).toBe(true);
      const again = await reopen();
      expect(await again.find(NEW)).toEqual({ ...NEW, id });
      expect(await again.find({ namespaceId: 'acme', name: 'none' })).toBeUndefined();
      expect((await again.list('acme')).map((one) => one.name)).toEqual(['blog', 'crm']);
    });

    test('a state is replaced only in the connection with the same id', async () => {
      const { port } = await openFresh(open);
      await port.create(NEW);
      expect(await port.settle({ ...NEW, id: 'former' }, STATE)).toBe(false);
      expect(await port.settle({ ...NEW, namespaceId: 'other' }, STATE)).toBe(false);
      expect(await port.settle(NEW, STATE)).toBe(true);
      expect(await port.find(NEW)).toEqual({ ...NEW, ...STATE });
      expect(await port.remove({ ...NEW, id: 'former' })).toBe(false);
      expect(await port.remove(NEW)).toBe(true);
      expect(await port.remove(NEW)).toBe(false);
      expect(await port.settle(NEW, STATE)).toBe(false);
    });

    test('a configuration is replaced only by the caller that read the present one, and keeps state and lease', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      await port.create({ ...NEW, ...STATE });
      await port.lease(NEW, 'refresh', LEASE_MS);
      const from = { settings: NEW.settings, sealedSecret: NEW.sealedSecret };
      const changed = await times(6, (n) =>
        [port, other][n % 2]!.configure(NEW, { settings: `{"n":${n}}`, sealedSecret: null }, from),
      );
      expect(changed.filter(Boolean)).toHaveLength(1);
      const now = { settings: `{"n":${changed.indexOf(true)}}`, sealedSecret: null };
      expect(await port.find(NEW)).toEqual({ ...NEW, ...STATE, ...now });
      expect(await port.configure({ ...NEW, id: 'former' }, from, now)).toBe(false);
      expect(await port.configure(NEW, { ...now, sealedSecret: 'v1.k.new' }, now)).toBe(true);
      expect((await port.find(NEW))!.sealedSecret).toBe('v1.k.new');
      expect(await port.settle(NEW, STATE, 'refresh')).toBe(true);
    });

    test('one of many callers of two processes gets the lease, until it is settled', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      await port.create({ ...NEW, ...STATE });
      const leases = await times(12, (n) => [port, other][n % 2]!.lease(NEW, `lease-${n}`, LEASE_MS));
      const winner = leases.findIndex((leased) => leased !== undefined);
      expect(leases.filter((leased) => leased !== undefined)).toEqual([
        { ...NEW, ...STATE, wasInterrupted: false },
      ]);
      expect(await port.settle(NEW, STATE, 'lease-of-another')).toBe(false);
      expect(await other.settle(NEW, { ...STATE, failures: 1 }, `lease-${winner}`)).toBe(true);
      expect(await port.settle(NEW, STATE, `lease-${winner}`)).toBe(false);
      expect(await port.lease(NEW, 'next', LEASE_MS)).toMatchObject({ failures: 1, wasInterrupted: false });
    });

    test('a lease that was not settled is given out again after its time, and marked', async () => {
      const { port, clock } = await openFresh(open);
      await port.create({ ...NEW, ...STATE });
      await port.lease(NEW, 'first', LEASE_MS);
      clock.advance(LEASE_MS - 1);
      expect(await port.lease(NEW, 'second', LEASE_MS)).toBeUndefined();
      clock.advance(1);
      expect(await port.lease(NEW, 'second', LEASE_MS)).toMatchObject({ wasInterrupted: true });
      expect(await port.settle(NEW, STATE, 'first')).toBe(false);
    });

    test('a new authorization ends the lease of a refresh in flight', async () => {
      const { port } = await openFresh(open);
      await port.create({ ...NEW, ...STATE });
      await port.lease(NEW, 'refresh', LEASE_MS);
      expect(await port.settle(NEW, { ...STATE, sealedTokens: 'v1.k.new' })).toBe(true);
      expect(await port.settle(NEW, { ...STATE, sealedTokens: 'v1.k.old' }, 'refresh')).toBe(false);
      expect((await port.find(NEW))!.sealedTokens).toBe('v1.k.new');
    });

    test('due refreshes come earliest first, without those that hold a lease', async () => {
      const { port, clock } = await openFresh(open);
      const now = clock.now();
      for (const [at, each] of ['c', 'a', 'b', 'later'].entries())
        await port.create({ ...NEW, ...STATE, name: each, refreshAt: each === 'later' ? now + 1 : now - at });
      await port.create({ ...NEW, name: 'pending' });
      expect((await port.due(now, 2)).map((one) => one.name)).toEqual(['b', 'a']);
      await port.lease({ ...NEW, name: 'b' }, 'lease', LEASE_MS);
      expect((await port.due(now, 10)).map((one) => one.name)).toEqual(['a', 'c']);
    });

    test('a refused authorization fails a connection without tokens only', async () => {
      const { port } = await openFresh(open);
      await port.create(NEW);
      await port.create({ ...NEW, ...STATE, name: 'used' });
      for (const each of ['crm', 'used']) await port.noteRefusal({ ...NEW, name: each }, '{"code":"x"}');
      expect(await port.find(NEW)).toMatchObject({ status: 'failed', lastError: '{"code":"x"}' });
      expect(await port.find({ ...NEW, name: 'used' })).toMatchObject({ status: 'active' });
      expect((await port.troubled(1001)).map((one) => one.name)).toEqual(['crm', 'used']);
      expect((await port.troubled(1000)).map((one) => one.name)).toEqual(['crm']);
    });
  });
}
