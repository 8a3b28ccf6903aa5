import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  type ExecutionRequest,
  exchangeToken,
  mintToken,
  pauseWebhook,
  resumeWebhook,
  revokeClient,
  revokeToken,
  revokeWebhook,
} from '../../../src/contracts/index.ts';
import { differingKeys, keyFingerprints } from '../../../src/daemons/gateway/domain/identity/shared-keys.ts';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import type { PlatformError } from '../../../src/kit/errors/errors.ts';
import type { KeyMaterial } from '../../../src/kit/security/keys.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import type { KeyFingerprints } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { TEST_KEYS, TEST_OPERATOR, type TestDaemonOptions, tempDir } from '../../support/daemon.ts';
import { placeEmptyDatabase } from '../../support/empty-database.ts';
import { ADMIN_TOKEN, deliver, provision, startGateway, type TestGateway } from '../../support/gateway.ts';
import { delivery } from '../../support/new-delivery.ts';

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
    const { membership, store: ports } = servicesOf(node);
    await ports.hosts.connect(hostId, `session-${hostId}`, 10, membership.fence);
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

test("each node's operator logs in, and a start revokes no other machine's", async () => {
  const store = await oneStore();
  const operatorOf = (name: string) => ({ ...TEST_OPERATOR, clientId: `client_${name}`, clientSecret: name });
  const a = await store.start('a', { operator: operatorOf('a') });
  const b = await store.start('b', { operator: operatorOf('b') });
  const logIn = (node: TestGateway, name: string) =>
    node.call(exchangeToken, { body: { clientId: `client_${name}`, clientSecret: name } });
  await expect(logIn(b, 'a')).resolves.toMatchObject({ tokenType: 'Bearer' });
  await expect(logIn(a, 'b')).resolves.toMatchObject({ tokenType: 'Bearer' });
  // A replaced one is revoked by hand.
  const c = await store.start('b', { operator: operatorOf('c') });
  await c.call(revokeClient, { params: { clientId: 'client_b' } });
  await expect(logIn(a, 'b')).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  await expect(logIn(a, 'c')).resolves.toMatchObject({ tokenType: 'Bearer' });
});

const tokens = (...names: string[]) => ({
  gateway: {
    staticTokens: Object.fromEntries(names.map((name) => [name, { hostId: name, namespaceId: 'default' }])),
  },
});

const isKnown = async (node: TestGateway, token: string): Promise<boolean> =>
  (await fetch(`${node.url}/api/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status ===
  200;

test('a node with an older config neither deletes nor restores static tokens, until no node runs the newer one', async () => {
  const store = await oneStore();
  const older = { config: tokens('kept', 'removed') };
  const newer = { config: tokens('kept', 'added') };
  const known = async (node: TestGateway) =>
    Promise.all(['kept', 'removed', 'added'].map((token) => isKnown(node, token)));
  await store.start('a', older);
  const b = await store.start('b', older);
  expect(await known(b)).toEqual([true, true, false]);
  const a = await store.start('a', newer);
  expect(await known(a)).toEqual([true, false, true]);
  const restarted = await store.start('b', older);
  expect(await known(restarted)).toEqual([true, false, true]);
  expect(restarted.logs.lines.some(({ message }) => /static tokens .* older/.test(String(message)))).toBe(
    true,
  );
  // A rollback is in force when the last node of the newer config has restarted with the older.
  const rolledBack = await store.start('a', older);
  expect(await known(rolledBack)).toEqual([true, true, false]);
});

test('a node with other keys than the running ones is refused with the variables to set', async () => {
  const store = await oneStore();
  const a = await store.start('a');
  const start = (keys: Partial<KeyMaterial>) => store.start('b', { keys });
  const other = 'another-secret-of-more-than-thirty-two-bytes';
  await expect(start({ jwtSecret: other })).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringMatching(/GATEWAY_JWT_SECRET differs.*node "a".*GATEWAY_JWT_SECRET_FILE/),
  });
  await expect(start({ internalSecret: other })).rejects.toThrow(/GATEWAY_INTERNAL_SECRET differs/);
  const masterKey = Buffer.alloc(32, 9).toString('base64url');
  await expect(start({ masterKey, jwtSecret: other })).rejects.toThrow(
    /SVC_MASTER_KEY and GATEWAY_JWT_SECRET differ/,
  );
  expect(await servicesOf(a).membership.others()).toEqual([]);
  await a.close();
  // Secrets in the store stay those of the first master key.
  await expect(start({ masterKey })).rejects.toThrow(/encrypted the store's secrets/);
  await start({ jwtSecret: other });
});

test('a JWT secret is replaced node by node, in two rounds', () => {
  const [old, next] = ['old-secret', 'new-secret'];
  const prints = (jwtSecret: string, previousJwtSecret: string | null) =>
    keyFingerprints({ ...TEST_KEYS, jwtSecret, previousJwtSecret });
  const differ = (...pair: [KeyFingerprints, KeyFingerprints]) => differingKeys(...pair);
  expect(differ(prints(old, next), prints(old, null))).toEqual([]);
  expect(differ(prints(next, old), prints(old, next))).toEqual([]);
  expect(differ(prints(next, null), prints(next, old))).toEqual([]);
  // The other node would refuse the tokens of this one.
  expect(differ(prints(next, old), prints(old, null))).toEqual(['GATEWAY_JWT_SECRET']);
});

test('the only node on a store may change its keys and its config by a restart', async () => {
  const { dataDir, close } = await startGateway({ config: tokens('removed') });
  await close();
  const keys = { jwtSecret: 'another-secret-of-more-than-thirty-two-bytes' };
  const next = await startGateway({ dataDir, keys, config: tokens('added') });
  expect([await isKnown(next, 'removed'), await isKnown(next, 'added')]).toEqual([false, true]);
});

test('the only node on a store recovers at once from a killed predecessor, even under a new instance id', async () => {
  const { dataDir, clock, close } = await startGateway();
  await close();
  const store = await sqliteGatewayStore({ dataDir, clock, logger: silentLogger });
  const member = { kind: 'gateway', instance: 'former', version: '1', release: null, keys: null } as const;
  const fence = await store.members.join({ ...member, leaseMs: null, isSole: true });
  const killed = delivery({ mode: 'sync' });
  await store.inbox.begin(killed, { key: 'killed', expiresAt: clock.now() + 600_000 }, fence);
  await store.close();
  const gateway = await startGateway({ dataDir, clock });
  const { inbox, members } = servicesOf(gateway).store;
  expect((await inbox.find(killed.webhookId))?.status).toBe('interrupted');
  expect(await inbox.seen('killed', clock.now())).toBeUndefined();
  expect(await members.unended('gateway')).toEqual([servicesOf(gateway).membership.fence]);
});

/** Moves the clocks of nodes in real time, since they poll the feed by them. Ends with the test. */
function moveClocks(...nodes: TestGateway[]): void {
  const timer = setInterval(() => {
    for (const { clock } of nodes) clock.advance(10);
  }, 10);
  onTestFinished(() => clearInterval(timer));
}

test('a token that one node revokes is rejected by the other once the call has returned', async () => {
  const store = await oneStore();
  const [a, b] = [await store.start('a'), await store.start('b')];
  moveClocks(a, b);
  const { token, jti } = await a.call(mintToken, { body: { hostId: 'ci' } });
  const statusOn = async ({ url }: TestGateway) =>
    (await fetch(`${url}/api/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect(await statusOn(a)).not.toBe(401);
  expect(await statusOn(b)).not.toBe(401);
  await a.call(revokeToken, { params: { jti } });
  expect([await statusOn(b), await statusOn(a)]).toEqual([401, 401]);
});

test('a secret that one node rotates or revokes changes on the other once the call has returned', async () => {
  const store = await oneStore();
  const [a, b] = [await store.start('a'), await store.start('b')];
  moveClocks(a, b);
  let sent = 0;
  const statusOnB = async (secret: string) =>
    (await deliver(b, { event: 'created', secret, payload: { delivery: { id: `d${sent++}` } } })).status;
  const first = await provision(a, 'created');
  expect(await statusOnB(first)).toBe(200);
  const next = await provision(a, 'created');
  expect([await statusOnB(next), await statusOnB(first)]).toEqual([200, 200]);
  await a.call(revokeWebhook, { params: { pluginId: '@acme/orders', event: 'created' } });
  expect(await statusOnB(next)).toBe(401);
});

test('a webhook that one node pauses and resumes is paused and resumed on the other', async () => {
  const store = await oneStore();
  const [a, b] = [await store.start('a'), await store.start('b')];
  moveClocks(a, b);
  const secret = await provision(a, 'created');
  const body = { pluginId: '@acme/orders', event: 'created' };
  let sent = 0;
  const statusOnB = async () =>
    (await deliver(b, { event: 'created', secret, payload: { delivery: { id: `p${sent++}` } } })).status;
  await a.call(pauseWebhook, { body });
  expect(await statusOnB()).toBe(503);
  await a.call(resumeWebhook, { body });
  expect(await statusOnB()).toBe(200);
});

test('a node that cannot read the feed for `auth.staleMs` refuses tokens with 503, and recovers by itself', async () => {
  const store = await oneStore();
  const a = await store.start('a', { config: { auth: { staleMs: 5000 } } });
  const answer = async () => {
    a.clock.advance(200);
    const response = await a.fetch('/api/v1/whoami', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    return { status: response.status, headers: response.headers, body: (await response.json()) as AnyJson };
  };
  const database = new DatabaseSync(join(store.dataDir, 'svc.db'), { timeout: 5000 });
  onTestFinished(() => database.close());
  database.exec('alter table feed rename to unreadable');
  a.clock.advance(4500);
  expect((await answer()).status).toBe(200);
  a.clock.advance(500);
  const refused = await answer();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  expect(refused.body.error).toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    details: { retryAfterSeconds: 5 },
  });
  // Requests without credentials are answered as ever.
  expect((await a.fetch('/api/v1/whoami')).status).toBe(401);
  expect((await a.fetch('/health')).status).toBe(200);
  database.exec('alter table unreadable rename to feed');
  await expect.poll(async () => (await answer()).status).toBe(200);
});

test('the only node accepts tokens however long it has been idle', async () => {
  const gateway = await startGateway();
  gateway.clock.advance(3_600_000);
  expect(await isKnown(gateway, ADMIN_TOKEN)).toBe(true);
});

test('a node that cannot read the feed delays a revocation by a second at most', async () => {
  const store = await oneStore();
  const [a, b] = [await store.start('a'), await store.start('b')];
  moveClocks(a);
  const { jti } = await a.call(mintToken, { body: { hostId: 'ci' } });
  const startedAt = performance.now();
  await a.call(revokeToken, { params: { jti } });
  const tookMs = performance.now() - startedAt;
  expect(tookMs).toBeGreaterThan(900);
  expect(tookMs).toBeLessThan(5000);
  expect(b.url).toBeDefined();
});
