import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createConnection,
  type Endpoint,
  getConnection,
  refreshConnection,
} from '../../../../src/contracts/index.ts';
import { createClient } from '../../../../src/http/index.ts';
import { ClusterGateway } from '../../../support/cluster-gateway.ts';
import { tempDir } from '../../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { migratedPostgres } from '../../../support/migrated-postgres.ts';
import { startOAuthProvider } from '../../../support/oauth-provider.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../../support/postgres.ts';
import { bodyOf, finish, LOOPBACK, NAME, tokenOf } from './support.ts';

const params = { name: NAME };

/** Two gateways in processes of their own on PostgreSQL, with an authorized connection. */
async function startTwo() {
  const url = await migratedPostgres();
  const provider = await startOAuthProvider();
  const config = { ...LOOPBACK, store: { url } };
  const gateways = [];
  for (const name of ['a', 'b']) {
    const gateway = await ClusterGateway.create({ name, projectDir: await tempDir(), config });
    await gateway.start();
    provider.trust(`http://localhost:${new URL(gateway.url).port}/oauth/callback`);
    gateways.push(gateway);
  }
  const [a, b] = gateways as [ClusterGateway, ClusterGateway];
  const call = (at: ClusterGateway, endpoint: Endpoint, input: object) =>
    createClient({ url: at.url, peer: 'gateway' }).call(endpoint, input as never, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    }) as Promise<Record<string, unknown>>;
  const created = await call(a, createConnection, { body: bodyOf(provider) });
  expect((await finish(String(created.authorizeUrl))).status).toBe(200);
  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  onTestFinished(() => sql.end());
  /** Ends the lease of a killed process, as a minute does. */
  const endLease = () => sql.query('update svc.connection set lease_until = 1 where lease_until is not null');
  return { a, b, provider, call, endLease };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'gateways on PostgreSQL' : POSTGRES_MISSING, () => {
  test('callers of two gateways cause one refresh, and both give out its token', async () => {
    const { a, b, provider, call } = await startTwo();
    let answer = (): void => {};
    provider.hold(new Promise((resolve) => (answer = () => resolve(null))));
    const calls = [a, b, a, b].map((gateway) => call(gateway, refreshConnection, { params }));
    await expect.poll(() => provider.refreshes().length).toBe(1);
    // The lease of the first call keeps the other gateway waiting while the provider has not answered.
    await new Promise((resolve) => setTimeout(resolve, 500));
    answer();
    for (const reply of await Promise.all(calls)) expect(reply.status).toBe('active');
    expect(provider.refreshes()).toHaveLength(1);
    const given = [await tokenOf(a), await tokenOf(b)].map(({ accessToken }) => accessToken);
    expect(given).toEqual([1, 2].map(() => provider.answers.at(-1)!.access_token));
  });

  test('a kill before the provider has the request costs nothing', async () => {
    const { a, b, provider, call, endLease } = await startTwo();
    provider.tamper(() => true);
    const killed = call(a, refreshConnection, { params }).catch(() => {});
    await expect.poll(() => provider.refreshes().length).toBe(1);
    await a.kill();
    await killed;
    provider.tamper(undefined);
    await endLease();
    expect(await call(b, refreshConnection, { params })).toMatchObject({ status: 'active', lastError: null });
  });

  test('a kill between answer and commit makes the connection fail with the reason', async () => {
    const { a, b, provider, call, endLease } = await startTwo();
    let answer = (): void => {};
    provider.hold(new Promise((resolve) => (answer = () => resolve(null))));
    const killed = call(a, refreshConnection, { params }).catch(() => {});
    await expect.poll(() => provider.refreshes().length).toBe(1);
    await a.kill();
    await killed;
    const before = provider.answers.length;
    answer();
    await expect.poll(() => provider.answers.length).toBe(before + 1);
    await endLease();
    await expect(call(b, refreshConnection, { params })).rejects.toMatchObject({
      code: 'CONNECTION_NOT_AUTHORIZED',
    });
    expect(await call(b, getConnection, { params })).toMatchObject({
      status: 'failed',
      lastError: { code: 'invalid_grant', message: expect.stringContaining('interrupted') },
    });
  });
});
