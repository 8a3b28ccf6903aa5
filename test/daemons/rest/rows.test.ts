import { expect, test } from 'vitest';
import { listPlugins } from '../../../src/contracts/index.ts';
import { marketplace } from '../../../src/daemons/marketplace/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { workflow } from '../../../src/daemons/workflow/index.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import { asCaller, REST_PROJECT, send, startRest } from './support.ts';

/** Rows of workflows and jobs with what their owner says where there is nothing of that name. */
const WORKFLOW_ROWS = [
  ['POST', '/api/v1/workflows/runs', 404, { workflowId: 'nightly' }],
  ['GET', '/api/v1/workflows/runs', 200],
  ['GET', '/api/v1/workflows/runs/run_1', 404],
  ['DELETE', '/api/v1/workflows/runs/run_1', 404],
  ['GET', '/api/v1/workflows/runs/run_1/logs', 404],
  ['GET', '/api/v1/workflows/runs/run_1/steps', 404],
  ['GET', '/api/v1/workflows', 200],
  ['GET', '/api/v1/workflows/schedules', 200],
  ['POST', '/api/v1/jobs', 404, { handler: 'github/sync' }],
  ['GET', '/api/v1/jobs', 200],
  ['GET', '/api/v1/jobs/job_1', 404],
] as const;

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

test('the rows of workflows and jobs are answered by the workflow service', async () => {
  const { rest, workflow } = await startWithOwners();
  for (const [method, path, status, body] of WORKFLOW_ROWS) {
    workflow.logs.lines.length = 0;
    const answer = await send(rest, method, path, { body, headers: asCaller('ci') });
    expect(answer.status, `${method} ${path}`).toBe(status);
    const seen = workflow.logs.lines.some(({ message }) => String(message).endsWith(` ${status}`));
    expect(seen, `the workflow service saw ${method} ${path}`).toBe(true);
  }
});

test('an idempotency key in the header starts a run once through the REST API too', async () => {
  const { rest } = await startWithOwners();
  const definition = { id: 'once', jobs: { main: { steps: [{ uses: 'set' }] } } };
  const headers = { ...asCaller('ci'), 'idempotency-key': 'k' };
  const start = () => send(rest, 'POST', '/api/v1/workflows/runs', { body: { definition }, headers });
  const [first, second] = [await start(), await start()];
  expect(first.status).toBe(202);
  expect((second.body as { run: { id: string } }).run.id).toBe(
    (first.body as { run: { id: string } }).run.id,
  );
});

test('rows of another service are answered by that service, for the caller and with the request ids', async () => {
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

test('an invalid request is answered without a call to the owning service', async () => {
  const rest = await startRest();
  const { status, body } = await send(rest, 'POST', '/api/v1/jobs', { body: { handler: 'x', when: 1 } });
  expect([status, body]).toEqual([400, { error: expect.objectContaining({ code: 'VALIDATION_ERROR' }) }]);
});

test('an unreachable owning service is 502', async () => {
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
