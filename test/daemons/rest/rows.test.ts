import { expect, test } from 'vitest';
import { listPlugins } from '../../../src/contracts/index.ts';
import { marketplace } from '../../../src/daemons/marketplace/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { workflow } from '../../../src/daemons/workflow/index.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import { asCaller, REST_PROJECT, send, startRest } from './support.ts';

/** Rows of the spec that their owner does not serve yet, by whoever says so. */
const NOT_YET = {
  workflow: [
    ['POST', '/api/v1/workflows/runs', { workflowId: 'nightly' }],
    ['GET', '/api/v1/workflows/runs'],
    ['GET', '/api/v1/workflows/runs/run_1'],
    ['DELETE', '/api/v1/workflows/runs/run_1'],
    ['GET', '/api/v1/workflows/runs/run_1/logs'],
    ['POST', '/api/v1/jobs', { handler: 'github/sync' }],
    ['GET', '/api/v1/jobs/job_1'],
  ],
  marketplace: [
    ['POST', '/api/v1/marketplace/plugins', { source: 'some-plugin' }],
    ['DELETE', '/api/v1/marketplace/plugins/github'],
  ],
} as const;

/** The REST daemon with the daemons behind it. */
async function startWithOwners() {
  const options = { projectDir: REST_PROJECT };
  const owners = {
    workflow: await startTestDaemon(workflow, options),
    marketplace: await startTestDaemon(marketplace, options),
  };
  const peers = createPeers({ workflow: owners.workflow.url, marketplace: owners.marketplace.url });
  return { ...owners, rest: await startRest({ peers }) };
}

test('every row of the spec is there; these answer 501 until their owner serves them', async () => {
  const { rest, workflow, marketplace } = await startWithOwners();
  const owners = { workflow, marketplace, rest };
  for (const [owner, rows] of Object.entries(NOT_YET)) {
    const { lines } = owners[owner as keyof typeof owners].logs;
    for (const [method, path, body] of rows) {
      lines.length = 0;
      const answer = await send(rest, method, path, { body, headers: asCaller('ci') });
      expect([answer.status, answer.body], `${method} ${path}`).toEqual([
        501,
        { error: { code: 'NOT_IMPLEMENTED', message: expect.any(String), details: {} } },
      ]);
      expect(
        lines.some(({ message }) => String(message).includes(' 501')),
        `${owner} saw ${method} ${path}`,
      ).toBe(true);
    }
  }
});

test('what its owner serves is answered by it, for the caller and under the ids of the request', async () => {
  const { rest, marketplace } = await startWithOwners();
  const headers = { ...asCaller('ci', 'acme'), 'x-request-id': 'req-7', 'x-trace-id': 'trace-7' };
  const list = await send(rest, 'GET', '/api/v1/marketplace/plugins', { headers });
  expect(list.body).toEqual(await marketplace.call(listPlugins));
  expect(marketplace.logs.lines).toContainEqual(
    expect.objectContaining({ requestId: 'req-7', traceId: 'trace-7', tenantId: 'acme' }),
  );
  const detail = await send(rest, 'GET', '/api/v1/marketplace/plugins/%40acme%2Fshop');
  expect([detail.status, detail.body]).toEqual([200, expect.objectContaining({ id: '@acme/shop' })]);
  const unknown = await send(rest, 'GET', '/api/v1/marketplace/plugins/nothing');
  expect([unknown.status, unknown.body]).toEqual([
    404,
    { error: expect.objectContaining({ code: 'PLUGIN_NOT_FOUND' }) },
  ]);
  const text = await (await rest.fetch('/metrics')).text();
  expect(text).toContain(
    'svc_rest_domain_operation_total{service="rest",domain="marketplace",operation="get_plugin",outcome="failed"} 1',
  );
  expect(text).toContain(
    'svc_rest_domain_operation_total{service="rest",domain="marketplace",operation="list_plugins",outcome="succeeded"} 1',
  );
});

test('a fault in the request is answered without asking the owner', async () => {
  const rest = await startRest();
  const { status, body } = await send(rest, 'POST', '/api/v1/jobs', { body: { handler: 'x', when: 1 } });
  expect([status, body]).toEqual([400, { error: expect.objectContaining({ code: 'VALIDATION_ERROR' }) }]);
});

test('an owner that is not there is 502', async () => {
  const rest = await startRest();
  const gone = await send(rest, 'GET', '/api/v1/workflows/runs');
  expect([gone.status, gone.body]).toEqual([
    502,
    { error: expect.objectContaining({ code: 'UPSTREAM_UNAVAILABLE' }) },
  ]);
});

test('rows need an identity where identity is required', async () => {
  const rest = await startRest({ config: { auth: { mode: 'required' } } });
  for (const path of [
    '/api/v1/workflows/runs',
    '/api/v1/logs',
    '/api/v1/marketplace/plugins',
    '/api/v1/plugins/shop/open',
  ]) {
    expect((await rest.fetch(path)).status, path).toBe(401);
  }
});
