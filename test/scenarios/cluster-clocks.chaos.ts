import { globSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { mintToken, provisionWebhook, revokeToken } from '../../src/contracts/index.ts';
import { createClient } from '../../src/http/index.ts';
import { atEnd } from '../support/at-end.ts';
import type { ClusterGateway } from '../support/cluster-gateway.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { HAS_HAPROXY } from '../support/haproxy.ts';
import { LEDGER_PLUGIN, sendToLedger } from '../support/ledger.ts';
import { startLoadedCluster } from '../support/loaded-cluster.ts';
import { POSTGRES_PROGRAMS, PostgresServer } from '../support/postgres.ts';

/** Library that shifts the wall clock of a process. */
const [FAKETIME] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
const MISSING = 'libfaketime is not installed: apt install libfaketime';
/** Longer than a lease. */
const LOAD_MS = 15_000;
const SLOW = 240_000;

const shifted = (by: string) => ({
  env: { LD_PRELOAD: FAKETIME, FAKETIME: by, FAKETIME_DONT_FAKE_MONOTONIC: '1', FAKETIME_DISABLE_SHM: '1' },
});

describe.skipIf(!FAKETIME || !POSTGRES_PROGRAMS || !HAS_HAPROXY)(
  FAKETIME ? 'clocks of gateways' : MISSING,
  () => {
    test.each(['+1h', '-1h'])(
      'one that is off by %s loses nothing, runs nothing twice and ends no other',
      async (by) => {
        const server = await PostgresServer.start({ durable: true });
        atEnd(() => server.remove());
        const cluster = await startLoadedCluster({
          databaseUrl: server.url(),
          gateways: { a: {}, b: shifted(by) },
        });
        const [right, wrong] = cluster.gateways as [ClusterGateway, ClusterGateway];
        const dateOf = async ({ url }: ClusterGateway) =>
          Date.parse((await fetch(`${url}/health`)).headers.get('date')!);
        const offBy = (await dateOf(wrong)) - (await dateOf(right));
        expect(Math.abs(offBy)).toBeGreaterThan(3_500_000);
        await sleep(LOAD_MS);

        const apis = cluster.gateways.map(({ url }) => createClient({ url, peer: 'gateway' }));
        const asAdmin = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
        const statuses = (token: string) =>
          Promise.all(
            cluster.gateways.map(async ({ url }) => {
              const headers = { authorization: `Bearer ${token}` };
              const response = await fetch(`${url}/api/v1/tokens`, { headers });
              await response.arrayBuffer();
              return response.status;
            }),
          );
        for (const api of apis) {
          const body = { hostId: 'operator' as never, ttlSeconds: 7200 };
          const { token, jti } = await api.call(mintToken, { body }, asAdmin);
          expect(await statuses(token)).toEqual([200, 200]);
          await api.call(revokeToken, { params: { jti } }, asAdmin);
          expect(await statuses(token)).toEqual([401, 401]);
        }

        await right.kill();
        await expect.poll(() => wrong.takeOvers, { timeout: 60_000 }).toBe(1);
        await right.start();
        await cluster.requireNothingLost();

        const { secret } = await apis[0]!.call(
          provisionWebhook,
          { body: { pluginId: LEDGER_PLUGIN as never, event: 'sync' } },
          asAdmin,
        );
        const isRunning = async (id: string) => (await cluster.ledger.runs()).some((run) => run.id === id);
        for (const [first, second] of [
          [right, wrong],
          [wrong, right],
        ] as const) {
          const sent = { event: 'sync', secret, payload: { id: `first-at-${first.name}`, sleepMs: 2000 } };
          const answer = sendToLedger(first.url, sent);
          await expect.poll(() => isRunning(sent.payload.id)).toBe(true);
          expect((await sendToLedger(second.url, sent)).body.status).toBe('duplicate');
          expect((await answer).body.status).toBe('ok');
        }
        const ended = cluster.gateways.flatMap(({ logs }) =>
          logs.filter(({ message }) => String(message).startsWith('Another process has ended')),
        );
        expect(ended).toEqual([]);
      },
      SLOW,
    );
  },
);
