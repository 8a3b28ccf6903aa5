import { expect, onTestFinished, test } from 'vitest';
import { readRunFacts, readWaitingApprovals } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { serviceHeaders } from '../../../src/http/index.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../../support/gateway.ts';
import { describeOnStores } from '../../support/stores.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const FAILS = { id: 'fails', steps: [{ uses: 'set', with: { v: cel('1 / 0') } }] };
const ASKS = { id: 'asks', steps: [{ id: 'ok', uses: 'approval' }] };
const ENDPOINTS = [
  [readRunFacts, { after: 0, limit: 10 }],
  [readWaitingApprovals, { before: 9e15, limit: 10 }],
] as const;

async function fail(it: TestWorkflow, tenant = 'default'): Promise<string> {
  const id = await it.start(FAILS, { tenant });
  await expect.poll(async () => (await it.run(id, tenant)).status).toBe('failed');
  return id;
}

test('facts and approvals are answered to services of the platform only', async () => {
  const it = await startWorkflow();
  const gateway = await startGateway({ peers: createPeers({ workflow: it.url }) });
  onTestFinished(() => gateway.close());
  await fail(it);
  const post = (url: string, path: string, body: object, headers: Record<string, string>) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const foreign = 'another-internal-secret-of-enough-length';
  for (const [{ path }, body] of ENDPOINTS) {
    const statusWith = async (headers: Record<string, string>) =>
      (await post(it.url, path, body, headers)).status;
    expect(await statusWith({})).toBe(401);
    expect(await statusWith({ 'x-svc-service-key': 'guessed' })).toBe(401);
    expect(await statusWith({ 'x-svc-tenant-id': 'default', 'x-svc-namespace-id': 'default' })).toBe(401);
    expect(await statusWith({ authorization: `Bearer ${ADMIN_TOKEN}` })).toBe(401);
    expect(await statusWith(serviceHeaders(foreign, { namespaceId: 'default' }))).toBe(401);
    const trusted = serviceHeaders(TEST_KEYS.internalSecret, { namespaceId: 'default' });
    expect(await statusWith(trusted)).toBe(200);
    expect((await post(it.url, path, { ...body, limit: 1001 }, trusted)).status).toBe(400);
    expect((await post(it.url, path, { limit: 1 }, trusted)).status).toBe(400);
    // The gateway does not forward internal paths, not even with a service key.
    expect((await post(gateway.url, path, body, { authorization: `Bearer ${ADMIN_TOKEN}` })).status).toBe(
      404,
    );
    expect((await post(gateway.url, path, body, trusted)).status).toBe(404);
  }
});

test('facts are read above a number, in order, and deleted when their number is passed', async () => {
  const it = await startWorkflow();
  const ids = [await fail(it), await fail(it, 'other'), await fail(it)];
  const read = async (after: number, limit = 10) =>
    (await it.call(readRunFacts, { body: { after, limit } })).facts;
  const facts = await read(0);
  expect(facts).toMatchObject(
    ids.map((objectId, n) => ({
      ...{ kind: 'run.failed', objectId, namespaceId: n === 1 ? 'other' : 'default', origins: [] },
      body: JSON.stringify({ workflow: 'fails', run: 'workflow', status: 'failed' }),
    })),
  );
  expect(await read(0, 1)).toEqual(facts.slice(0, 1));
  // A reader that did not commit its position reads the same facts again.
  expect(await read(0)).toEqual(facts);
  expect(await read(facts[1]!.seq)).toEqual(facts.slice(2));
  expect(await read(0)).toEqual(facts.slice(2));
  expect(await read(facts[2]!.seq)).toEqual([]);
  const next = await fail(it);
  const [fact] = await read(facts[2]!.seq);
  expect(fact).toMatchObject({ objectId: next });
  expect(fact!.seq).toBeGreaterThan(facts[2]!.seq);
});

describeOnStores('runs that wait for an approval', (config) => {
  test('are found by the time since which they wait, and by tenant', async () => {
    const it = await startWorkflow({ config: await config() });
    const read = async (before: number, more: { tenantId?: string; limit?: number } = {}) =>
      (await it.call(readWaitingApprovals, { body: { before, limit: 10, ...more } })).approvals;
    const ask = async (tenant: string) => {
      const id = await it.start(ASKS, { tenant });
      await expect.poll(async () => (await it.run(id, tenant)).status).toBe('waiting');
      return id;
    };
    const first = await ask('default');
    const since = it.clock.now();
    it.clock.advance(1000);
    const second = await ask('other');
    expect(await read(since)).toMatchObject([{ tenantId: 'default', runId: first, workflowId: 'asks' }]);
    expect((await read(it.clock.now())).map(({ runId }) => runId)).toEqual([first, second]);
    expect((await read(it.clock.now(), { limit: 1 })).map(({ runId }) => runId)).toEqual([first]);
    expect((await read(it.clock.now(), { tenantId: 'other' })).map(({ runId }) => runId)).toEqual([second]);
    expect(await read(since - 1)).toEqual([]);
  });
});
