import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import {
  createClientCredentials,
  exchangeToken,
  listWebhooks,
  mintToken,
  provisionWebhook,
  refreshToken,
  revokeClient,
  revokeHost,
  revokeToken,
} from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { createClient } from '../../src/http/index.ts';
import { hours, minutes } from '../../src/kit/time/duration.ts';
import { dispatch, startTestAgent } from '../agent/support.ts';
import { startRest } from '../daemons/rest/support.ts';
import { sharedByTests } from '../support/at-end.ts';
import { ClusterGateway } from '../support/cluster-gateway.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { HAPROXY_MISSING, HAS_HAPROXY, SERVED_BY, startHaproxy, untilServedBy } from '../support/haproxy.ts';
import { registerTestHost } from '../support/host-agent.ts';
import { createLedgerProject, LEDGER_PLUGIN, sendToLedger } from '../support/ledger.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const GATEWAYS = 3;
const HOST_PLUGIN = fileURLToPath(new URL('../fixtures/projects/hosts/plugins/*', import.meta.url));
const BUSY_LIMIT = 60;
const SLOW = 120_000;
const MISSING = POSTGRES_PROGRAMS ? HAPROXY_MISSING : POSTGRES_MISSING;

/** Three gateways on one database behind HAProxy, and a REST service that reaches them through HAProxy. */
async function startCluster() {
  const [databaseUrl, ledger] = [await migratedPostgres(), await createLedgerProject()];
  const peers = createPeers();
  const execution = { plugins: { '@acme/tools': { backend: 'host' } } };
  const plugins = ['./plugins/*', HOST_PLUGIN];
  const rest = await startRest({ projectDir: ledger.folder, peers, config: { plugins, execution } });
  const create = (name: string, more: { url?: string; auth?: object } = {}) =>
    ClusterGateway.create({
      name,
      projectDir: ledger.folder,
      peers: { rest: rest.url },
      config: {
        store: { url: more.url ?? databaseUrl },
        plugins,
        execution,
        tenants: { busy: { requestsPerMinute: BUSY_LIMIT } },
        ...(more.auth ? { auth: more.auth } : {}),
      },
    });
  const gateways = await Promise.all(['a', 'b', 'c'].map((name) => create(name)));
  const proxy = await startHaproxy(gateways.map(({ url }) => url));
  peers.set({ gateway: proxy });
  await Promise.all(gateways.map((gateway) => gateway.start()));
  await untilServedBy(proxy, GATEWAYS);
  const api = createClient({ url: proxy, peer: 'gateway' });
  const asAdmin = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
  return { create, databaseUrl, ledger, gateways, proxy, api, asAdmin };
}

describe.skipIf(!POSTGRES_PROGRAMS || !HAS_HAPROXY)(
  POSTGRES_PROGRAMS && HAS_HAPROXY ? 'three gateways behind HAProxy' : MISSING,
  { timeout: SLOW },
  () => {
    const cluster = sharedByTests(startCluster);

    /** Statuses of one authenticated call at each gateway, by way of HAProxy. */
    async function statuses(token: string): Promise<number[]> {
      const byServer = new Map<string | null, number>();
      const headers = { authorization: `Bearer ${token}` };
      for (let n = 0; n < GATEWAYS; n++) {
        const response = await fetch(`${cluster().proxy}/api/v1/whoami`, { headers });
        await response.arrayBuffer();
        byServer.set(response.headers.get(SERVED_BY), response.status);
      }
      expect([...byServer.keys()].sort()).toEqual(['gateway0', 'gateway1', 'gateway2']);
      return [...byServer.values()];
    }

    const secretOf = async (event: string): Promise<string> => {
      const { api, asAdmin } = cluster();
      const body = { pluginId: LEDGER_PLUGIN as never, event };
      return (await api.call(provisionWebhook, { body }, asAdmin)).secret;
    };

    const newClient = async () => {
      const { api, asAdmin } = cluster();
      const client = await api.call(createClientCredentials, { body: { name: 'ci' } }, asAdmin);
      const { clientId, clientSecret } = client;
      const logIn = () => api.call(exchangeToken, { body: { clientId, clientSecret } });
      return { clientId, clientSecret, logIn };
    };

    test('all accept static tokens and the tokens that one has issued', async () => {
      const { api, asAdmin } = cluster();
      const { token } = await api.call(mintToken, { body: { hostId: 'ci' as never } }, asAdmin);
      const { accessToken } = await (await newClient()).logIn();
      for (const each of [ADMIN_TOKEN, token, accessToken])
        expect(await statuses(each)).toEqual([200, 200, 200]);
      expect(await statuses('unknown')).toEqual([401, 401, 401]);
    });

    test('all refuse a token, client or host as soon as DELETE has answered', async () => {
      const { api, asAdmin, proxy } = cluster();
      const makers = {
        async token() {
          const { token, jti } = await api.call(mintToken, { body: { hostId: 'ci' as never } }, asAdmin);
          return { token, revoke: () => api.call(revokeToken, { params: { jti } }, asAdmin) };
        },
        async client() {
          const { clientId, logIn } = await newClient();
          const { accessToken: token } = await logIn();
          return { token, revoke: () => api.call(revokeClient, { params: { clientId } }, asAdmin) };
        },
        async host() {
          const host = await registerTestHost({ url: proxy }, ADMIN_TOKEN);
          const params = { hostId: host.hostId };
          return { token: await host.token(), revoke: () => api.call(revokeHost, { params }, asAdmin) };
        },
      };
      for (const make of Object.values(makers)) {
        for (let n = 0; n < GATEWAYS; n++) {
          const { token, revoke } = await make();
          // All of them cache the token.
          expect(await statuses(token)).toEqual([200, 200, 200]);
          await revoke();
          expect(await statuses(token)).toEqual([401, 401, 401]);
        }
      }
    });

    test('a refresh token that is used at one gateway and later at another revokes the login at all', async () => {
      const { gateways, databaseUrl } = cluster();
      const { logIn } = await newClient();
      const first = await logIn();
      const refreshAt = (index: number, token: string) =>
        createClient({ url: gateways[index]!.url, peer: 'gateway' }).call(refreshToken, {
          body: { refreshToken: token },
        });
      const second = await refreshAt(0, first.refreshToken);
      const third = await refreshAt(1, second.refreshToken);
      // Within ten seconds, a second use counts as the retry of a lost reply.
      const retried = await refreshAt(2, first.refreshToken);
      const access = [first, second, third, retried].map(({ accessToken }) => accessToken);
      for (const token of access) expect(await statuses(token)).toEqual([200, 200, 200]);
      const database = new pg.Client(databaseUrl);
      await database.connect();
      await database.query(
        'update svc.refresh_token set spent_at = spent_at - 10000 where spent_at is not null',
      );
      await database.end();
      await expect(refreshAt(2, first.refreshToken)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
      for (const token of access) expect(await statuses(token)).toEqual([401, 401, 401]);
      for (const index of gateways.keys())
        await expect(refreshAt(index, third.refreshToken)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    });

    test('a secret that one rotates holds at all; the former holds for 24 hours, the one before no more', async () => {
      const { gateways, api, asAdmin } = cluster();
      const answers = (secret: string) =>
        Promise.all(
          gateways.map(async ({ url }) => {
            const { status } = await sendToLedger(url, {
              event: 'sync',
              secret,
              payload: { id: randomUUID() },
            });
            return status;
          }),
        );
      const oldest = await secretOf('sync');
      expect(await answers(oldest)).toEqual([200, 200, 200]);
      const before = Date.now();
      const former = await secretOf('sync');
      expect([await answers(former), await answers(oldest)]).toEqual([
        [200, 200, 200],
        [200, 200, 200],
      ]);
      const { items } = await api.call(listWebhooks, {}, asAdmin);
      const { previousExpiresAt } = items.find(({ event }) => event === 'sync')!;
      expect(previousExpiresAt! - before).toBeGreaterThanOrEqual(hours(24));
      expect(previousExpiresAt! - Date.now()).toBeLessThanOrEqual(hours(24));
      const current = await secretOf('sync');
      expect([await answers(current), await answers(former), await answers(oldest)]).toEqual([
        [200, 200, 200],
        [200, 200, 200],
        [401, 401, 401],
      ]);
    });

    test('deliveries with one id that reach all at once run once, sync and async', async () => {
      const { gateways, ledger } = cluster();
      const ids: string[] = [];
      for (const event of ['sync', 'async']) {
        const secret = await secretOf(event);
        for (let round = 0; round < 10; round++) {
          const id = `${event}-${round}`;
          ids.push(id);
          const sent = { event, secret, payload: { id, sleepMs: 20 } };
          const answers = await Promise.all(
            gateways.flatMap(({ url }) => [1, 2].map(() => sendToLedger(url, sent))),
          );
          const outcomes = answers.map(({ status, body }) => body.status ?? status).sort();
          const won = event === 'sync' ? 'ok' : 'accepted';
          expect(outcomes).toEqual([...Array(2 * GATEWAYS - 1).fill('duplicate'), won].sort());
        }
      }
      const runs = async () => (await ledger.runs()).map(({ id }) => id).filter((id) => ids.includes(id));
      await expect.poll(runs).toHaveLength(ids.length);
      expect((await runs()).sort()).toEqual(ids.toSorted());
    });

    test('limits of tenants and of webhooks are exact in total', async () => {
      const { proxy, api, asAdmin } = cluster();
      const body = { hostId: 'busy' as never, namespaceId: 'busy' as never };
      const { token } = await api.call(mintToken, { body }, asAdmin);
      const headers = { authorization: `Bearer ${token}` };
      const calls = Array.from({ length: 2 * BUSY_LIMIT }, async () => {
        const response = await fetch(`${proxy}/api/v1/whoami`, { headers });
        await response.arrayBuffer();
        return response.status;
      });
      const secret = await secretOf('limited');
      const deliveries = Array.from({ length: 100 }, async () => {
        const { status } = await sendToLedger(proxy, { event: 'limited', secret, payload: { id: 'any' } });
        return status;
      });
      const countOf = (all: number[], status: number) => all.filter((one) => one === status).length;
      const [called, delivered] = [await Promise.all(calls), await Promise.all(deliveries)];
      expect([countOf(called, 200), countOf(called, 429)]).toEqual([BUSY_LIMIT, BUSY_LIMIT]);
      expect([countOf(delivered, 200), countOf(delivered, 429)]).toEqual([50, 50]);
    });

    test('wrong secrets of a client are counted over all', async () => {
      const { proxy } = cluster();
      const { clientId } = await newClient();
      const guesses: number[] = [];
      for (let n = 0; n < 15; n++) {
        const response = await fetch(`${proxy}/auth/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ clientId, clientSecret: `guess ${n}` }),
        });
        guesses.push(response.status);
        await response.arrayBuffer();
      }
      expect(guesses).toEqual([...Array(10).fill(401), ...Array(5).fill(429)]);
    });

    test('dispatches and plugin calls through each gateway reach a host that is connected to one', async () => {
      const { gateways, proxy } = cluster();
      const { host } = await startTestAgent({ url: gateways[0]!.url } as never);
      for (const gateway of gateways) {
        const { status, body } = await dispatch(gateway, 'echo', { input: gateway.name });
        expect([status, body.result]).toMatchObject([200, { result: gateway.name }]);
        const called = await fetch(`${gateway.url}/api/v1/plugins/tools/echo`, {
          method: 'POST',
          headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
          body: JSON.stringify({ text: gateway.name }),
        });
        expect([called.status, await called.json()]).toMatchObject([200, { text: gateway.name }]);
      }
      const targeted = await dispatch({ url: proxy }, 'echo', { input: 1, target: { hostId: host.hostId } });
      expect(targeted.body.result).toMatchObject({ result: 1 });
    });

    test('a gateway that cannot read revocations for auth.staleMs refuses credentials until it can', async () => {
      const { create, databaseUrl, api, asAdmin } = cluster();
      const { hostname, port } = new URL(databaseUrl);
      const link = await TcpProxy.open({ host: hostname, port: Number(port) });
      const url = new URL(databaseUrl);
      url.port = String(link.port);
      const cutOff = await create('d', { url: url.href, auth: { staleMs: 1000 } });
      await cutOff.start();
      const { token, jti } = await api.call(mintToken, { body: { hostId: 'ci' as never } }, asAdmin);
      const statusOf = async (bearer: string) => {
        const headers = { authorization: `Bearer ${bearer}` };
        const response = await fetch(`${cutOff.url}/api/v1/whoami`, { headers });
        await response.arrayBuffer();
        return response.status;
      };
      await expect.poll(() => statusOf(token)).toBe(200);
      link.cut();
      await expect.poll(() => statusOf(token), { timeout: minutes(1) }).toBe(503);
      expect(await statusOf(ADMIN_TOKEN)).toBe(503);
      await api.call(revokeToken, { params: { jti } }, asAdmin);
      link.mend();
      await expect.poll(() => statusOf(ADMIN_TOKEN), { timeout: minutes(1) }).toBe(200);
      expect(await statusOf(token)).toBe(401);
      await cutOff.kill();
      await link.close();
    });
  },
);
