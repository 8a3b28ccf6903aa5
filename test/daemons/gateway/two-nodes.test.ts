import { expect, test, vi } from 'vitest';
import type { ExecutionRequest } from '../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import type { PlatformError } from '../../../src/kit/errors/errors.ts';
import { type TestDaemonOptions, tempDir } from '../../support/daemon.ts';
import { placeEmptyDatabase } from '../../support/empty-database.ts';
import { deliver, provision, startGateway, type TestGateway } from '../../support/gateway.ts';

/** Starts nodes on one store; the same instance started again is a restart of that node. */
async function oneStore() {
  const dataDir = await tempDir();
  await placeEmptyDatabase('gateway', dataDir);
  return {
    dataDir,
    start: (instance: string, options: TestDaemonOptions = {}) =>
      startGateway({
        ...options,
        dataDir,
        sharesStore: true,
        env: { SVC_INSTANCE: instance, ...options.env },
      }),
  };
}

const servicesOf = (node: TestGateway): GatewayServices => node.services as GatewayServices;

async function registerHost(node: TestGateway, hostId: string): Promise<void> {
  const record = { namespaceId: 'default', name: hostId, createdAt: 1, revokedAt: null };
  await servicesOf(node).store.hosts.register(
    {
      ...{ ...record, hostId, clientId: `client-${hostId}`, publicKey: 'a2V5' },
      ...{ capabilities: [], labels: {}, metadata: {}, sessionId: null, connectedAt: null, lastSeenAt: null },
    },
    { ...record, clientId: `client-${hostId}`, hostId, secretHash: 'hash' },
  );
}

test('a starting node clears the host sessions of its predecessor, and not those of another node', async () => {
  const store = await oneStore();
  const a = await store.start('a');
  const b = await store.start('b');
  for (const [node, hostId] of [
    [a, 'h1'],
    [b, 'h2'],
  ] as const) {
    await registerHost(node, hostId);
    const { fence, store: ports } = servicesOf(node);
    await ports.hosts.connect(hostId, `session-${hostId}`, 10, fence.require());
  }
  // The former process of b is still there, as a killed one would be to the store.
  await store.start('b');
  const { hosts } = servicesOf(a).store;
  expect(await hosts.find('h1')).toMatchObject({ sessionId: 'session-h1' });
  expect(await hosts.find('h2')).toMatchObject({ sessionId: null });
});

test('a starting node revokes the container tokens of its predecessor, and not those of another node', async () => {
  const store = await oneStore();
  const a = await store.start('a');
  const b = await store.start('b');
  const issue = async (node: TestGateway) => {
    const request = { executionId: crypto.randomUUID(), tenantId: 'default', timeoutMs: 60_000 };
    return (await servicesOf(node).credentials.issue(request as ExecutionRequest)).token;
  };
  const [ofA, ofB] = [await issue(a), await issue(b)];
  const next = await store.start('b');
  const isAccepted = async (token: string): Promise<boolean> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${next.url}/api/v1/whoami`, { headers })).status !== 401;
  };
  expect([await isAccepted(ofA), await isAccepted(ofB)]).toEqual([true, false]);
  // Its own are safe from a later sweep, too.
  expect(await servicesOf(next).credentials.revokeOrphans()).toBe(0);
});

test("a starting node interrupts the sync deliveries of its predecessor, frees their ids, and leaves another node's alone", async () => {
  const store = await oneStore();
  const a = await store.start('a');
  const b = await store.start('b');
  const secret = await provision(a, 'created');
  const send = (node: TestGateway, id: string, sleepMs: number) =>
    deliver(node, { event: 'created', secret, payload: { delivery: { id }, sleepMs } });
  const ofA = send(a, 'of-a', 4000);
  const ofB = send(b, 'of-b', 4000);
  const { inbox } = servicesOf(a).store;
  const running = async () => (await inbox.list('default', { limit: 10 })).items.map(({ status }) => status);
  await vi.waitFor(async () => expect(await running()).toEqual(['running', 'running']), 10_000);
  const next = await store.start('b');
  expect((await running()).sort()).toEqual(['interrupted', 'running']);
  const [again, duplicate] = await Promise.all([send(next, 'of-b', 0), send(next, 'of-a', 0)]);
  expect([again.body.status, duplicate.body.status]).toEqual(['ok', 'duplicate']);
  expect((await ofA).body.status).toBe('ok');
  await ofB;
}, 30_000);

test('a node whose lease is over refuses sync deliveries, and stops when another has ended it', async () => {
  const store = await oneStore();
  const fatal: PlatformError[] = [];
  const a = await store.start('a', { onFatal: (error) => fatal.push(error) });
  const secret = await provision(a, 'created');
  // The renewal that falls due while time passes cannot reach the store.
  const renew = vi.spyOn(servicesOf(a).store.members, 'renew').mockRejectedValue(new Error('cut off'));
  a.clock.advance(60_000);
  const refused = await deliver(a, { event: 'created', secret, payload: { delivery: { id: '1' } } });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  renew.mockRestore();
  await store.start('a');
  await vi.waitFor(() => {
    a.clock.advance(3000);
    expect(fatal).toHaveLength(1);
  }, 5000);
});
