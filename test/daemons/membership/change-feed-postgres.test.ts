import { describe, expect, onTestFinished, test } from 'vitest';
import { ChangeFeed, POLL_MS } from '../../../src/daemons/membership/change-feed.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { GatewayStore } from '../../../src/store/ports/index.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { postgresGatewayStore } from '../../../src/store/postgres/gateway/store.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

const STALE_MS = 30_000;

/** Two nodes on one database, one of them through a proxy. Both have the same clock, also for their leases. */
async function twoNodes() {
  const clock = manualClock();
  const url = new URL(await emptyPostgres());
  const proxy = await TcpProxy.open({ host: url.hostname, port: Number(url.port) });
  const direct = url.href;
  url.port = String(proxy.port);
  async function open(instance: string, address: string) {
    const database = new PostgresDatabase({ url: address, logger: silentLogger, applicationName: instance });
    if (address === direct) await migratePostgres(database);
    const store: GatewayStore = postgresGatewayStore(database, {
      clock,
      logger: silentLogger,
      leaseClock: clock,
    });
    const member = { kind: 'gateway', instance, version: '1', release: null, keys: null } as const;
    const sharedAs = await store.members.join({ ...member, leaseMs: 3_600_000, isSole: false });
    const feed = await ChangeFeed.open({
      ...{ store: store.feed, sharedAs, staleMs: STALE_MS, clock, logger: silentLogger },
    });
    onTestFinished(async () => {
      await feed.close();
      await store.close();
    });
    const revoked: string[] = [];
    feed.follow('revocations', (keys) => void revoked.push(...(keys ?? [])));
    return { store, feed, revoked };
  }
  const here = await open('a', direct);
  const there = await open('b', url.href);
  onTestFinished(() => proxy.close());
  return { clock, proxy, here, there };
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'change feed on PostgreSQL' : POSTGRES_MISSING,
  () => {
    test('a node that is cut from the database accepts no credentials, and catches up when it is back', async () => {
      const { clock, proxy, here, there } = await twoNodes();
      proxy.cut();
      await here.store.revocations.revokeHost('h1', 1);
      clock.advance(STALE_MS - POLL_MS);
      expect(() => there.feed.requireFresh()).not.toThrow();
      clock.advance(POLL_MS);
      expect(() => there.feed.requireFresh()).toThrow(/has not read revocations .* for 30 s/);
      proxy.mend();
      await expect
        .poll(
          () => {
            clock.advance(POLL_MS);
            there.feed.requireFresh();
            return there.revoked;
          },
          { timeout: 10_000 },
        )
        .toEqual(['h1']);
    });

    test('a change is in force on every node once the call has returned', async () => {
      const { clock, here, there } = await twoNodes();
      const timer = setInterval(() => clock.advance(10), 10);
      onTestFinished(() => clearInterval(timer));
      for (const host of ['h1', 'h2', 'h3']) {
        await here.store.revocations.revokeHost(host, 1);
        await here.feed.spread();
        expect(there.revoked).toContain(host);
      }
    });
  },
);
