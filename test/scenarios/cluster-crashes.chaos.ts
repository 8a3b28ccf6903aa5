import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, test, vi } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import { ClusterGateway } from '../support/cluster-gateway.ts';
import { HAS_HAPROXY, startHaproxy, untilServedBy } from '../support/haproxy.ts';
import { createLedgerProject, type LedgerProject } from '../support/ledger.ts';
import { judgeLedger, LedgerLoad, ledgerSecrets } from '../support/ledger-load.ts';
import { migrateDatabase } from '../support/migrated-postgres.ts';
import { POSTGRES_PROGRAMS, PostgresServer } from '../support/postgres.ts';
import { PostgresPair } from '../support/postgres-pair.ts';
import { below, printedRandom } from '../support/random.ts';

const KILLS = Number(process.env.SVC_TEST_CLUSTER_KILLS ?? 20);
const FAILOVERS = Number(process.env.SVC_TEST_CLUSTER_FAILOVERS ?? 2);
const SENDERS = 16;
/** Every tenth killed gateway stays away until the other has taken over its deliveries. */
const TAKE_OVER_EVERY = 10;
const MAX_PAUSE_MS = 2000;
const SETTLE_MS = 120_000;
const HOUR = 3_600_000;

interface Cluster {
  databaseUrl: string;
  gateways: ClusterGateway[];
  ledger: LedgerProject;
  proxy: string;
  load: LedgerLoad;
}

/** Two gateways on one database behind HAProxy, under load. */
async function startCluster(databaseUrl: string): Promise<Cluster> {
  await migrateDatabase(databaseUrl);
  const ledger = await createLedgerProject();
  const config = { store: { url: databaseUrl } };
  const gateways = await Promise.all(
    ['a', 'b'].map((name) => ClusterGateway.create({ name, projectDir: ledger.folder, config })),
  );
  for (const gateway of gateways) await gateway.start();
  const proxy = await startHaproxy(gateways.map(({ url }) => url));
  await untilServedBy(proxy, gateways.length);
  const load = new LedgerLoad(proxy, await ledgerSecrets(proxy), SENDERS);
  return { databaseUrl, gateways, ledger, proxy, load };
}

/** Waits until every accepted delivery has ended, and requires that each has run, as one delivery. */
async function requireNothingLost({ databaseUrl, ledger, load }: Cluster): Promise<void> {
  await load.stop();
  const database = new pg.Client(databaseUrl);
  await database.connect();
  const statuses = async () => {
    const { rows } = await database.query(
      "select status, count(*)::int from svc.delivery where mode = 'async' and status <> 'duplicate' group by status",
    );
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  };
  try {
    await expect
      .poll(statuses, { timeout: SETTLE_MS, interval: 500 })
      .toEqual({ succeeded: expect.any(Number) });
  } finally {
    await database.end();
  }
  const judgement = judgeLedger(load.acknowledged, await ledger.runs());
  console.info(
    `${load.acknowledged.size} acknowledged, ${judgement.lost.length} lost, ${judgement.repeated} run again after an interruption; answers: ${JSON.stringify(load.outcomes)}`,
  );
  expect(judgement).toMatchObject({ lost: [], acceptedTwice: [], ranTwiceInOneProcess: [] });
  expect([load.acceptedTwice, load.withoutRetryAfter]).toEqual([0, 0]);
}

const leads = ({ logs }: ClusterGateway): number =>
  logs.filter(({ message }) => String(message).startsWith('This node schedules the accepted')).length;

describe.skipIf(!POSTGRES_PROGRAMS || !HAS_HAPROXY)('two gateways on PostgreSQL under webhook load', () => {
  test(
    `${KILLS} times kill -9 of a gateway: no acknowledged delivery is lost or accepted twice`,
    async () => {
      const random = printedRandom();
      const server = await PostgresServer.start({ durable: true });
      atEnd(() => server.remove());
      const cluster = await startCluster(server.url());
      const takeOverMs: number[] = [];
      for (let kill = 1; kill <= KILLS; kill++) {
        await sleep(below(random, MAX_PAUSE_MS));
        const victim = cluster.gateways[below(random, 2)]!;
        const other = cluster.gateways.find((gateway) => gateway !== victim)!;
        await victim.kill();
        if (kill % TAKE_OVER_EVERY === 0 && leads(other) === 0) {
          const killedAt = performance.now();
          await vi.waitFor(() => expect(leads(other)).toBe(1), 60_000);
          takeOverMs.push(Math.round(performance.now() - killedAt));
        }
        await victim.start();
      }
      console.info(`take-over after ms: ${takeOverMs.join(', ')}`);
      await requireNothingLost(cluster);
    },
    HOUR,
  );

  test(
    `${FAILOVERS} failovers and restarts of PostgreSQL: no acknowledged delivery is lost or accepted twice`,
    async () => {
      const random = printedRandom();
      const pair = await PostgresPair.start();
      atEnd(() => pair.remove());
      const cluster = await startCluster(pair.url);
      const times: Record<'promotion' | 'restart', number[]> = { promotion: [], restart: [] };
      const servesAgain = async (after: 'promotion' | 'restart', from: number): Promise<void> => {
        await cluster.load.nextAcknowledged();
        times[after].push(Math.round(performance.now() - from));
      };
      for (let failover = 0; failover < FAILOVERS; failover++) {
        await sleep(below(random, MAX_PAUSE_MS));
        await pair.failOver(below(random, 2) === 0 ? 'kill' : 'stop');
        await servesAgain('promotion', performance.now());
        await sleep(below(random, MAX_PAUSE_MS));
        await pair.addStandby();
        await sleep(below(random, MAX_PAUSE_MS));
        await pair.primary.stop('immediate');
        await pair.primary.up();
        await servesAgain('restart', performance.now());
      }
      for (const [after, ms] of Object.entries(times))
        console.info(`serves again after ${after}, in ms: ${ms.join(', ')}`);
      await requireNothingLost(cluster);
    },
    HOUR,
  );
});
