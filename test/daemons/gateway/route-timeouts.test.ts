import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createPeers } from '../../../src/daemons/peers.ts';
import { MEMBER_TOKEN, startGateway } from '../../support/gateway.ts';
import { REST_PROJECT, startRest } from '../rest/support.ts';
import { startUpstream } from './support/echo-upstream.ts';

const AUTHORIZED = { authorization: `Bearer ${MEMBER_TOKEN}` };
/** The routes of the fixture's plugin declare 20 s, `/hang` 1.5 s. */
const PROJECT = { projectDir: REST_PROJECT };
const CONFIG = { plugins: ['./plugins/shop'], gateway: { upstreamTimeoutMs: 100 } };

test("a timeoutMs of a plugin route above the gateway's limit is honoured, and its 504 comes from the route", async () => {
  const rest = await startRest({ config: { auth: { mode: 'required' } } });
  const peers = createPeers({ rest: rest.url });
  const gateway = await startGateway({ ...PROJECT, peers, config: CONFIG });
  const answer = gateway.fetch('/api/v1/plugins/shop/hang', { method: 'POST', headers: AUTHORIZED });
  await expect
    .poll(() => rest.logs.lines.some(({ message }) => message === 'hang has begun'), { timeout: 20_000 })
    .toBe(true);
  // Well beyond the gateway's limit, in real time; the route's own runs by the clock of the test.
  await sleep(500);
  rest.clock.advance(1500);
  const response = await answer;
  expect(response.status).toBe(504);
  expect(await response.json()).toMatchObject({ error: { code: 'EXECUTION_TIMEOUT' } });
});

test('other paths keep the limit of the gateway', async () => {
  const waiting: ServerResponse[] = [];
  const upstream = await startUpstream((_request, response) => void waiting.push(response));
  const peers = createPeers({ rest: upstream.url });
  const gateway = await startGateway({ ...PROJECT, peers, config: CONFIG });
  const call = (path: string, method = 'GET') => gateway.fetch(path, { method, headers: AUTHORIZED });

  const slow = [call('/api/v1/plugins/shop/orders?limit=1'), call('/api/v1/plugins/%40acme%2Fshop/orders')];
  await expect.poll(() => waiting.length).toBe(2);
  for (const path of ['/api/v1/jobs', '/api/v1/plugins/shop/nothing', '/api/v1/plugins/unknown/orders']) {
    const response = await call(path);
    expect([response.status, await response.json()], path).toMatchObject([
      504,
      { error: { code: 'UPSTREAM_TIMEOUT' } },
    ]);
  }
  for (const response of waiting) response.end('{}');
  expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([200, 200]);
});
