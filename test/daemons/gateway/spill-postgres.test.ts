import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { tempDir } from '../../support/daemon.ts';
import { deliver, handlerRuns, provision, startGateway, type TestGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

const servicesOf = (node: TestGateway): GatewayServices => node.services as GatewayServices;

/** Starts gateways on one PostgreSQL; the first one reaches it through a proxy that the test can cut. */
async function setUp(whenStoreDown: 'spill' | 'refuse' = 'spill') {
  const direct = new URL(await migratedPostgres());
  const proxy = await TcpProxy.open({ host: direct.hostname, port: Number(direct.port) });
  const proxied = new URL(direct);
  proxied.hostname = '127.0.0.1';
  proxied.port = String(proxy.port);
  const dataDir = await tempDir();
  const start = (url: URL, instance: string, options: { dataDir?: string; when?: string } = {}) =>
    startGateway({
      config: { store: { url: url.href }, inbox: { whenStoreDown: options.when ?? whenStoreDown } },
      env: { SVC_INSTANCE: instance },
      dataDir: options.dataDir,
    });
  const node = await start(proxied, 'a', { dataDir });
  const secret = await provision(node, 'later');
  // Caches the secret, which cannot be read while PostgreSQL is away.
  await send(node, secret, 'first');
  return { node, proxy, direct, start, secret, dataDir };
}

const send = (node: TestGateway, secret: string, id: string) =>
  deliver(node, { event: 'later', secret, payload: { n: id }, headers: { 'x-delivery': id } });

const recordOf = (node: TestGateway, webhookId: string) => servicesOf(node).store.inbox.find(webhookId);

const statusOf = async (node: TestGateway, webhookId: string) => (await recordOf(node, webhookId))?.status;

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'inbox.whenStoreDown' : POSTGRES_MISSING,
  { timeout: 60_000 },
  () => {
    test('with "spill", async deliveries are accepted while PostgreSQL is away, and run once it is back', async () => {
      const { node, proxy, secret } = await setUp();
      proxy.cut();
      const sent = await Promise.all(['1', '2', '3'].map((id) => send(node, secret, id)));
      expect(sent.map(({ status }) => status)).toEqual([202, 202, 202]);
      const again = await send(node, secret, '2');
      expect([again.status, again.body.status]).toEqual([200, 'duplicate']);
      expect(servicesOf(node).degradations()).toMatchObject([{ reasonCode: 'INBOX_NOT_FILED' }]);
      expect((await node.fetch('/ready')).status).toBe(200);
      expect(handlerRuns(node)).toBeLessThan(2);
      proxy.mend();
      for (const { body } of sent)
        await expect.poll(() => statusOf(node, body.webhookId), { timeout: 20_000 }).toBe('succeeded');
      const record = await recordOf(node, sent[0]!.body.webhookId);
      expect(record?.steps).toContain('store=spilled');
      expect(handlerRuns(node)).toBe(4);
      expect(servicesOf(node).degradations()).toEqual([]);
      const late = await send(node, secret, '3');
      expect(late.body.status).toBe('duplicate');
    });

    test('with "spill", a sync delivery is 503 with Retry-After while PostgreSQL is away', async () => {
      const { node, proxy } = await setUp();
      const secret = await provision(node, 'created');
      const sync = () =>
        deliver(node, { event: 'created', secret, payload: { delivery: { id: randomUUID() } } });
      expect((await sync()).status).toBe(200);
      proxy.cut();
      const refused = await sync();
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    });

    test('with "refuse", an async delivery is 503 with Retry-After while PostgreSQL is away', async () => {
      const { node, proxy, secret } = await setUp('refuse');
      proxy.cut();
      const refused = await send(node, secret, '1');
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
      proxy.mend();
      await expect.poll(async () => (await send(node, secret, '1')).status, { timeout: 20_000 }).toBe(202);
    });

    test('a spilled delivery whose id another node accepted meanwhile is stored as a duplicate and never runs', async () => {
      const { node, proxy, direct, start, secret } = await setUp();
      const other = await start(direct, 'b');
      proxy.cut();
      const spilled = await send(node, secret, 'same');
      expect(spilled.status).toBe(202);
      const accepted = await send(other, secret, 'same');
      expect(accepted.status).toBe(202);
      proxy.mend();
      await expect.poll(() => statusOf(other, spilled.body.webhookId), { timeout: 20_000 }).toBe('duplicate');
      await expect
        .poll(() => statusOf(other, accepted.body.webhookId), { timeout: 20_000 })
        .toBe('succeeded');
      expect(handlerRuns(node) + handlerRuns(other)).toBe(2);
    });

    test('deliveries that a stopped gateway spilled are moved at its next start, also with "refuse"', async () => {
      const { node, proxy, direct, start, secret, dataDir } = await setUp();
      proxy.cut();
      const { body } = await send(node, secret, '1');
      await node.close();
      const next = await start(direct, 'a', { dataDir, when: 'refuse' });
      await expect.poll(() => statusOf(next, body.webhookId), { timeout: 20_000 }).toBe('succeeded');
    });
  },
);
