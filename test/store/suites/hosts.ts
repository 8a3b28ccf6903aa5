import { describe, expect, test } from 'vitest';
import type { ClientRecord, GatewayStore, HostRecord } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const host = (hostId: string, more: Partial<HostRecord> = {}): HostRecord => ({
  hostId,
  clientId: `client-of-${hostId}`,
  namespaceId: 'acme',
  name: 'Build machine',
  publicKey: 'a2V5',
  capabilities: ['docker'],
  labels: { zone: 'eu' },
  metadata: { cores: 8 },
  createdAt: 1000,
  revokedAt: null,
  sessionId: null,
  connectedAt: null,
  lastSeenAt: null,
  ...more,
});

const clientOf = ({ clientId, hostId, namespaceId, name }: HostRecord): ClientRecord => ({
  clientId,
  hostId,
  namespaceId,
  name,
  secretHash: 'hash',
  createdAt: 1000,
  revokedAt: null,
});

/** What every driver of HostStore, RevocationStore and MintedTokenStore does: they share tables, so they are tested as one. */
export function describeHosts(name: string, open: OpenDriver<GatewayStore>): void {
  describe(`hosts and revocations: ${name}`, () => {
    async function withHosts(...hosts: HostRecord[]) {
      const bench = await openFresh(open);
      for (const one of hosts) await bench.port.hosts.register(one, clientOf(one));
      return bench;
    }

    test('a host and its client are registered together or not at all', async () => {
      const { port, reopen } = await withHosts(host('h1'));
      await expect(port.hosts.register(host('h2'), clientOf(host('h1')))).rejects.toMatchObject({
        code: 'CONFLICT',
      });
      await expect(port.hosts.register(host('h1'), clientOf(host('h3')))).rejects.toMatchObject({
        code: 'CONFLICT',
      });
      const reopened = await reopen();
      expect(await reopened.hosts.find('h1')).toEqual(host('h1'));
      expect(await reopened.hosts.find('h2')).toBeUndefined();
      expect(await reopened.clients.find('client-of-h3')).toBeUndefined();
      expect(await reopened.clients.find('client-of-h1')).toEqual(clientOf(host('h1')));
    });

    test('hosts of one namespace or of all are listed in pages', async () => {
      const { port } = await withHosts(host('h1'), host('h2', { namespaceId: 'other' }), host('h3'));
      const ids = async (namespaceId?: string, after?: string) =>
        (await port.hosts.list(namespaceId, { limit: 2, ...(after ? { after } : {}) })).map(
          ({ hostId }) => hostId,
        );
      expect(await ids('acme')).toEqual(['h1', 'h3']);
      expect(await ids()).toEqual(['h1', 'h2']);
      expect(await ids(undefined, 'h2')).toEqual(['h3']);
    });

    test('a session that moves to another member is announced in the feed, and no other one', async () => {
      const { port } = await withHosts(host('h1'), host('h2'));
      const start = await port.feed.begin();
      const moved = async () => (await port.feed.read(start, 10)).changes;
      await port.hosts.connect('h1', 's1', 10, 5);
      await port.hosts.connect('h1', 's2', 20, 5);
      await port.hosts.disconnect('h1', 's2', 30);
      await port.hosts.connect('h1', 's3', 40, 6);
      await port.hosts.connect('h2', 's4', 40, 6);
      expect(await moved()).toEqual([]);
      await port.hosts.connect('h1', 's5', 50, 7);
      expect(await moved()).toEqual([{ topic: 'hosts', key: 'h1' }]);
    });

    test('hosts of other members are found with their owner; offline, revoked and foreign ones are not', async () => {
      const ids = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'];
      const { port } = await withHosts(...ids.map((id) => host(id)), host('h7', { namespaceId: 'other' }));
      for (const id of ['h1', 'h2', 'h3', 'h4', 'h7']) await port.hosts.connect(id, `s-${id}`, 10, 5);
      await port.hosts.connect('h5', 's-h5', 10, 6);
      await port.hosts.disconnect('h2', 's-h2', 20);
      await port.revocations.revokeHost('h3', 30);
      const found = async (own: number, limit: number, hostId?: string) =>
        (await port.hosts.connectedElsewhere('acme', own, { limit, hostId })).map((one) => [
          one.hostId,
          one.owner,
        ]);
      expect(await found(6, 10)).toEqual([
        ['h1', 5],
        ['h4', 5],
      ]);
      expect(await found(5, 10)).toEqual([['h5', 6]]);
      expect(await found(7, 2)).toEqual([
        ['h1', 5],
        ['h4', 5],
      ]);
      expect([await found(7, 10, 'h5'), await found(6, 10, 'h5')]).toEqual([[['h5', 6]], []]);
      expect(await port.hosts.connectedElsewhere('acme', 5, { limit: 1 })).toEqual([
        { hostId: 'h5', owner: 6, capabilities: ['docker'], labels: { zone: 'eu' } },
      ]);
    });

    test('a new session replaces the previous one, whose late close changes nothing', async () => {
      const { port } = await withHosts(host('h1'));
      await port.hosts.connect('h1', 'old', 10);
      await port.hosts.connect('h1', 'new', 20);
      expect(await port.hosts.seen('h1', 'old', 30)).toBe(false);
      await port.hosts.disconnect('h1', 'old', 40);
      expect(await port.hosts.find('h1')).toMatchObject({
        sessionId: 'new',
        connectedAt: 20,
        lastSeenAt: 20,
      });
      expect(await port.hosts.seen('h1', 'new', 50)).toBe(true);
      await port.hosts.disconnect('h1', 'new', 60);
      expect(await port.hosts.find('h1')).toMatchObject({
        sessionId: null,
        connectedAt: null,
        lastSeenAt: 60,
      });
    });

    test('only sessions without a live owner are ended', async () => {
      const { port } = await withHosts(host('h1'), host('h2'), host('h3'), host('h4'));
      const node = { kind: 'gateway', version: '1.0.0', release: null, keys: null, leaseMs: 10_000 } as const;
      const [live, ended] = [
        await port.members.join({ ...node, instance: 'a', isSole: false }),
        await port.members.join({ ...node, instance: 'b', isSole: false }),
      ];
      await port.hosts.connect('h1', 's1', 10, live);
      await port.hosts.connect('h2', 's2', 10, ended);
      await port.hosts.connect('h3', 's3', 10);
      expect(await port.hosts.disconnectEnded(20)).toBe(1);
      await port.members.leave(ended);
      expect([await port.hosts.disconnectEnded(30), await port.hosts.disconnectEnded(40)]).toEqual([1, 0]);
      const off = { sessionId: null, connectedAt: null, lastSeenAt: 10 };
      expect(await port.hosts.find('h1')).toMatchObject({ sessionId: 's1', connectedAt: 10 });
      expect(await port.hosts.find('h2')).toEqual(host('h2', off));
      expect(await port.hosts.find('h3')).toEqual(host('h3', off));
      expect(await port.hosts.find('h4')).toEqual(host('h4'));
    });

    test('revoking a host revokes its clients and refresh tokens in the same step, and no others', async () => {
      const { port, clock } = await withHosts(host('h1'), host('h2'));
      const token = (tokenHash: string, clientId: string) => ({
        tokenHash,
        familyId: tokenHash,
        clientId,
        createdAt: clock.now(),
        expiresAt: clock.now() + 1000,
        spentAt: null,
      });
      await port.refreshTokens.add(token('t1', 'client-of-h1'));
      await port.refreshTokens.add(token('t2', 'client-of-h2'));
      expect(await port.revocations.revokeHost('h1', 5000)).toBe(true);
      expect(await port.hosts.find('h1')).toMatchObject({ revokedAt: 5000 });
      expect(await port.clients.find('client-of-h1')).toMatchObject({ revokedAt: 5000 });
      expect(await port.refreshTokens.find('t1')).toBeUndefined();
      expect(await port.hosts.find('h2')).toMatchObject({ revokedAt: null });
      expect(await port.refreshTokens.find('t2')).toBeDefined();

      expect(await port.revocations.revokeHost('h1', 6000)).toBe(false);
      expect(await port.hosts.find('h1')).toMatchObject({ revokedAt: 5000 });
    });

    test('only one of several concurrent revocations counts as the first', async () => {
      const { port, second } = await withHosts(host('h1'));
      const other = await second();
      const firsts = await times(20, (i) => (i % 2 ? port : other).revocations.revokeHost('h1', i));
      expect(firsts.filter(Boolean)).toHaveLength(1);
      expect(await port.revocations.since(0, 10)).toHaveLength(1);
    });

    test('another process reads the revocations since its last read, in order', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      await port.revocations.revokeHost('h1', 1);
      const [first] = await other.revocations.since(0, 10);
      expect(first).toMatchObject({ kind: 'host', subject: 'h1', expiresAt: null });
      await port.revocations.revokeToken('j1', 9000, 2);
      await port.revocations.revokeToken('j2', 9000, 2);
      const news = await other.revocations.since(first!.sequence, 10);
      expect(news).toMatchObject([
        { kind: 'token', subject: 'j1', expiresAt: 9000 },
        { kind: 'token', subject: 'j2', expiresAt: 9000 },
      ]);
      expect(await other.revocations.since(first!.sequence, 1)).toHaveLength(1);
    });

    test('revocations of expired tokens are deleted, those of hosts stay, and no sequence number is reused', async () => {
      const { port } = await openFresh(open);
      await port.revocations.revokeHost('h1', 1);
      await port.revocations.revokeToken('j1', 9000, 2);
      const last = (await port.revocations.since(0, 10)).at(-1)!.sequence;
      expect(await port.revocations.prune(8999)).toBe(0);
      expect(await port.revocations.prune(9000)).toBe(1);
      await port.revocations.revokeToken('j2', 9999, 3);
      const left = await port.revocations.since(0, 10);
      expect(left.map(({ subject }) => subject)).toEqual(['h1', 'j2']);
      expect(left.at(-1)!.sequence).toBeGreaterThan(last);
    });

    test('minted tokens are listed newest first until they expire, with their revocation', async () => {
      const { port } = await openFresh(open);
      const minted = (jti: string, expiresAt: number, namespaceId = 'acme') => ({
        jti,
        hostId: 'ci',
        namespaceId,
        createdBy: 'operator',
        createdAt: 1,
        expiresAt,
        revokedAt: null,
      });
      await port.mintedTokens.add(minted('j1', 100));
      await port.mintedTokens.add(minted('j2', 50));
      await port.mintedTokens.add(minted('j3', 100, 'other'));
      const ids = async (now: number, namespaceId?: string, before?: string) =>
        (await port.mintedTokens.list(namespaceId, { now, limit: 2, ...(before ? { before } : {}) })).map(
          ({ jti }) => jti,
        );
      expect(await ids(0)).toEqual(['j3', 'j2']);
      expect(await ids(0, undefined, 'j2')).toEqual(['j1']);
      expect(await ids(0, 'acme')).toEqual(['j2', 'j1']);
      expect(await ids(50, 'acme')).toEqual(['j1']);
      await port.revocations.revokeToken('j1', 100, 7);
      expect(await port.mintedTokens.find('j1')).toEqual({ ...minted('j1', 100), revokedAt: 7 });
      expect(await port.mintedTokens.prune(50)).toBe(1);
      expect(await port.mintedTokens.find('j2')).toBeUndefined();
    });
  });
}
