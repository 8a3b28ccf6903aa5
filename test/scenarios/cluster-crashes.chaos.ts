import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import type { ClusterGateway } from '../support/cluster-gateway.ts';
import { HAS_HAPROXY } from '../support/haproxy.ts';
import { startLoadedCluster } from '../support/loaded-cluster.ts';
import { POSTGRES_PROGRAMS, PostgresServer } from '../support/postgres.ts';
import { PostgresPair } from '../support/postgres-pair.ts';
import { below, printedRandom } from '../support/random.ts';

const KILLS = Number(process.env.SVC_TEST_CLUSTER_KILLS ?? 20);
const FAILOVERS = Number(process.env.SVC_TEST_CLUSTER_FAILOVERS ?? 2);
/** Every fifth kill is of the gateway that schedules the deliveries, which stays away until the other takes over. */
const TAKE_OVER_EVERY = 5;
const POLL = { timeout: 60_000, interval: 20 };
const MAX_PAUSE_MS = 2000;
const HOUR = 3_600_000;

describe.skipIf(!POSTGRES_PROGRAMS || !HAS_HAPROXY)('two gateways on PostgreSQL under webhook load', () => {
  test(
    `${KILLS} times kill -9 of a gateway: no acknowledged delivery is lost or accepted twice`,
    async () => {
      const random = printedRandom();
      const server = await PostgresServer.start({ durable: true });
      atEnd(() => server.remove());
      const cluster = await startLoadedCluster({ databaseUrl: server.url() });
      const takeOverMs: number[] = [];
      let [leader, other] = cluster.gateways as [ClusterGateway, ClusterGateway];
      await expect.poll(() => leader.takeOvers, POLL).toBe(1);
      for (let kill = 1; kill <= KILLS; kill++) {
        await sleep(below(random, MAX_PAUSE_MS));
        const staysAway = kill % TAKE_OVER_EVERY === 0;
        const victim = staysAway || below(random, 2) === 0 ? leader : other;
        const before = other.takeOvers;
        await victim.kill();
        const killedAt = performance.now();
        if (staysAway) {
          await expect.poll(() => other.takeOvers, POLL).toBe(before + 1);
          takeOverMs.push(Math.round(performance.now() - killedAt));
        }
        await victim.start();
        // A gateway that starts again is younger than the other.
        if (victim === leader) [leader, other] = [other, leader];
      }
      console.info(`take-over after ms: ${takeOverMs.join(', ')}`);
      await cluster.requireNothingLost();
    },
    HOUR,
  );

  test(
    `${FAILOVERS} failovers and restarts of PostgreSQL: no acknowledged delivery is lost or accepted twice`,
    async () => {
      const random = printedRandom();
      const pair = await PostgresPair.start();
      atEnd(() => pair.remove());
      const cluster = await startLoadedCluster({ databaseUrl: pair.url });
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
      await cluster.requireNothingLost();
    },
    HOUR,
  );
});
