import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { mintToken } from '../../src/contracts/index.ts';
import { createClient } from '../../src/http/index.ts';
import { atEnd } from '../support/at-end.ts';
import type { ClusterGateway } from '../support/cluster-gateway.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { HAS_HAPROXY } from '../support/haproxy.ts';
import { startLoadedCluster } from '../support/loaded-cluster.ts';
import { POSTGRES_PROGRAMS, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const SLOW = 240_000;
const POLL = { timeout: 60_000, interval: 100 };
/** Load before and after a fault. */
const LOAD_MS = 2000;
const WRITES = 2000;

async function durableServer(settings: Record<string, string> = {}): Promise<PostgresServer> {
  const server = await PostgresServer.start({ durable: true, settings });
  atEnd(() => server.remove());
  return server;
}

/** Resolves when another gateway has ended this one, whose process must then end by itself, and starts it again. */
async function startAgainAfterItsEnd(gateway: ClusterGateway): Promise<void> {
  expect(await gateway.ended()).toEqual({ code: 1 });
  expect(gateway.logs.map(({ message }) => message)).toContainEqual(
    expect.stringContaining('Another process has ended this gateway'),
  );
  await gateway.start();
}

describe.skipIf(!POSTGRES_PROGRAMS || !HAS_HAPROXY)('faults of a cluster under webhook load', () => {
  test(
    'a gateway that stands still past its lease ends when it continues, and nothing is lost or accepted twice',
    async () => {
      const server = await durableServer();
      const { gateways, requireNothingLost } = await startLoadedCluster({ databaseUrl: server.url() });
      const [first, second] = gateways as [ClusterGateway, ClusterGateway];
      await expect.poll(() => first.takeOvers, POLL).toBe(1);
      await sleep(LOAD_MS);
      first.signal('SIGSTOP');
      await expect.poll(() => second.takeOvers, POLL).toBe(1);
      await sleep(LOAD_MS);
      first.signal('SIGCONT');
      await startAgainAfterItsEnd(first);
      await requireNothingLost();
    },
    SLOW,
  );

  test(
    'a gateway that is cut from PostgreSQL leaves the load to the other, and starts again once it is back',
    async () => {
      const server = await durableServer();
      const link = await TcpProxy.open(server.address);
      atEnd(() => link.close());
      const cutUrl = new URL(server.url());
      cutUrl.port = String(link.port);
      const { gateways, proxy, requireNothingLost } = await startLoadedCluster({
        databaseUrl: server.url(),
        gateways: { a: { databaseUrl: cutUrl.href }, b: {} },
      });
      const [first, second] = gateways as [ClusterGateway, ClusterGateway];
      await expect.poll(() => first.takeOvers, POLL).toBe(1);
      await sleep(LOAD_MS);
      link.cut();
      const statusOf = async (url: string) => (await fetch(`${url}/ready`)).status;
      await expect.poll(() => statusOf(first.url), POLL).toBe(503);
      await expect.poll(() => second.takeOvers, POLL).toBe(1);
      expect(await statusOf(proxy)).toBe(200);
      link.mend();
      await startAgainAfterItsEnd(first);
      await requireNothingLost();
    },
    SLOW,
  );

  test(
    `with commits of 100 ms, ${WRITES} concurrent writes succeed and both gateways keep their leases`,
    async () => {
      const server = await durableServer({ commit_delay: '100000', commit_siblings: '0' });
      const { gateways, proxy, load, requireNothingLost } = await startLoadedCluster({
        databaseUrl: server.url(),
      });
      const api = createClient({ url: proxy, peer: 'gateway' });
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const startedAt = performance.now();
      const writes = await Promise.allSettled(
        Array.from({ length: WRITES }, () =>
          api.call(mintToken, { body: { hostId: 'ci' as never } }, { headers }),
        ),
      );
      console.info(`${WRITES} writes in ${Math.round(performance.now() - startedAt)} ms`);
      expect(writes.filter(({ status }) => status === 'rejected')).toEqual([]);
      await load.nextAcknowledged();
      await requireNothingLost();
      expect(Object.keys(load.outcomes).sort()).toEqual(['200', '202']);
      const problems = gateways.flatMap(({ logs }) => logs.filter(({ level }) => level === 'error'));
      expect(problems).toEqual([]);
      const { rows } = await server.run(
        'select count(*)::int as live from svc.member where ended_at is null',
      );
      expect(rows).toEqual([{ live: 2 }]);
    },
    SLOW,
  );
});
