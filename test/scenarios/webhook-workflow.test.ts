import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { getDelivery, listRuns, replayDelivery, startByDelivery } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { createClient, serviceHeaders } from '../../src/http/index.ts';
import { startProcesses } from '../daemons/gateway/support/start-processes.ts';
import { cel, startWorkflow, type TestWorkflow } from '../daemons/workflow/support/workflow.ts';
import { TEST_KEYS, tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, deliver, provision, startGateway, type TestGateway } from '../support/gateway.ts';
import { startOtlpReceiver } from '../support/otlp.ts';

const PLUGINS = [fileURLToPath(new URL('../fixtures/projects/webhooks/plugins/*', import.meta.url))];

const ON_ORDER = {
  id: 'on-order',
  inputs: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
  on: {
    webhook: ['created', 'later'].map((event) => ({
      pluginId: '@acme/orders',
      event,
      if: 'delivery.payload.kind == "order"',
      input: { sku: cel('delivery.payload.sku'), from: cel('delivery.event') },
    })),
  },
  jobs: { main: { steps: [{ id: 'note', uses: 'set', with: { sku: cel('input.sku') } }] } },
};

/** A project whose one workflow is started by deliveries. */
async function project(definition: object = ON_ORDER): Promise<string> {
  const folder = await tempDir();
  await mkdir(join(folder, 'workflows'));
  await writeFile(join(folder, 'workflows/on-order.yaml'), JSON.stringify(definition));
  return folder;
}

const runsOf = async (it: TestWorkflow) => (await it.call(listRuns, { query: { limit: 50 } as never })).items;

interface StartOptions {
  definition?: object;
  otlp?: { endpoint: string; headers: Record<string, string> };
}

async function start({ definition, ...options }: StartOptions = {}) {
  const projectDir = await project(definition);
  const config = { plugins: PLUGINS };
  const it = await startWorkflow({ projectDir, config, ...options });
  const peers = createPeers({ workflow: it.url });
  const gateway = await startGateway({ projectDir, config, peers, ...options });
  return { it, gateway, peers };
}

const order = (sku: unknown, id: string) => ({ kind: 'order', sku, delivery: { id } });

describe('a delivery', () => {
  test('starts the workflow it matches, once for its id, in one trace with it', async () => {
    const { endpoint, spans } = await startOtlpReceiver();
    const { it, gateway } = await start({ otlp: { endpoint, headers: {} } });
    const secret = await provision(gateway, 'created');
    const send = () => deliver(gateway, { event: 'created', secret, payload: order('a-1', 'd1') });
    const { status, headers } = await send();
    expect(status).toBe(200);
    expect((await send()).body).toEqual({ status: 'duplicate' });
    const [run, ...more] = await runsOf(it);
    expect(more).toEqual([]);
    expect(run).toMatchObject({ trigger: 'webhook', input: { sku: 'a-1', from: 'created' } });
    await it.until(run!.id, 'succeeded');
    const delivery = await gateway.call(getDelivery, {
      params: { webhookId: headers.get('x-webhook-id') as never },
    });
    expect(delivery.outcome).toMatchObject({
      workflows: { runs: [{ workflowId: 'on-order', runId: run!.id }], refused: [] },
    });
    await Promise.all([gateway.close(), it.close()]);
    const named = (name: string) => spans.find((span) => span.name === name);
    const ofRun = named('workflow on-order')!;
    const ofStep = named('step main.note')!;
    const asked = named('POST /internal/workflows/deliveries')!;
    expect(new Set([ofRun, ofStep, asked].map(({ traceId }) => traceId)).size).toBe(1);
    const handled = spans.find(({ attributes }) => attributes['svc.host'] === 'webhook')!;
    expect(handled.traceId).toBe(ofRun.traceId);
    expect([ofStep.parentSpanId, ofRun.parentSpanId]).toEqual([ofRun.spanId, asked.spanId]);
  });

  test('that matches no condition, or whose handler fails, starts nothing', async () => {
    const { it, gateway } = await start();
    const secret = await provision(gateway, 'created');
    const send = async (payload: object) =>
      (await deliver(gateway, { event: 'created', secret, payload })).status;
    expect(await send({ ...order('a', '1'), kind: 'refund' })).toBe(200);
    expect(await send({ ...order('a', '2'), do: 'fail' })).toBe(500);
    expect(await runsOf(it)).toEqual([]);
  });

  test('that can never start its workflow succeeds all the same, and the reason is on record', async () => {
    const { it, gateway } = await start();
    const secret = await provision(gateway, 'created');
    const reply = await deliver(gateway, { event: 'created', secret, payload: order(7, 'd1') });
    expect(reply.status).toBe(200);
    const { outcome } = await gateway.call(getDelivery, {
      params: { webhookId: reply.headers.get('x-webhook-id') as never },
    });
    expect(outcome).toMatchObject({
      workflows: { runs: [], refused: [{ workflowId: 'on-order', code: 'VALIDATION_ERROR' }] },
    });
    expect(it.logs.lines).toContainEqual(expect.objectContaining({ event: 'workflow.start_refused' }));
  });

  test('that `strategy: reject` turns away succeeds all the same: its sender did nothing wrong', async () => {
    const hold = { steps: [{ id: 'hold', uses: 'signal', with: { name: 'go' } }] };
    const { it, gateway } = await start({
      definition: {
        ...ON_ORDER,
        concurrency: { key: cel('input.sku'), strategy: 'reject' },
        jobs: { main: hold },
      },
    });
    const secret = await provision(gateway, 'created');
    const replies = [];
    for (const id of ['d1', 'd2'])
      replies.push(await deliver(gateway, { event: 'created', secret, payload: order('a', id) }));
    expect(replies.map(({ status }) => status)).toEqual([200, 200]);
    expect(await runsOf(it)).toHaveLength(1);
    const { outcome } = await gateway.call(getDelivery, {
      params: { webhookId: replies[1]!.headers.get('x-webhook-id') as never },
    });
    expect(outcome).toMatchObject({
      workflows: { runs: [], refused: [{ workflowId: 'on-order', code: 'CONCURRENT_LIMIT_EXCEEDED' }] },
    });
  });

  test('fails while its workflow cannot be started for now, so that the sender comes again', async () => {
    const { it, gateway, peers } = await start();
    const [created, plain] = [await provision(gateway, 'created'), await provision(gateway, 'plain')];
    const send = (id: string) =>
      deliver(gateway, { event: 'created', secret: created, payload: order('a', id) });
    expect((await send('d1')).status).toBe(200);
    await it.close();
    const refused = await send('d2');
    expect([refused.status, refused.body.error.code]).toEqual([502, 'UPSTREAM_UNAVAILABLE']);
    // Others do not depend on it.
    expect((await deliver(gateway, { event: 'plain', secret: plain })).status).toBe(200);
    const again = await startWorkflow({
      projectDir: await project(),
      dataDir: it.dataDir,
      config: { plugins: PLUGINS },
    });
    peers.set({ workflow: again.url });
    expect((await send('d2')).status).toBe(200);
    expect(await runsOf(again)).toHaveLength(2);
  });
});

test('the id of a delivery names its run for seven days, within its namespace, webhook and instance', async () => {
  const it = await startWorkflow({ projectDir: await project(), config: { plugins: PLUGINS } });
  const starter = { hostId: 'webhook:@acme/orders', namespaceId: 'default' };
  const start = async (more: object, namespaceId = 'default') => {
    const headers = serviceHeaders(TEST_KEYS.internalSecret, { ...starter, namespaceId } as never);
    const body = {
      webhookId: randomUUID(),
      pluginId: '@acme/orders',
      event: 'created',
      instanceId: null,
      receivedAt: 1,
      payload: order('a', '1'),
      deliveryId: 's:1',
      ...more,
    };
    const client = createClient({ url: it.url, peer: 'workflow' });
    const { runs } = await client.call(startByDelivery, { body } as never, { headers });
    return runs[0]?.runId;
  };
  const first = await start({});
  const others = [
    await start({}, 'other'),
    await start({ event: 'later' }),
    await start({ instanceId: 'i' }),
    await start({ deliveryId: 'n:1' }),
    await start({ deliveryId: undefined }),
    await start({ deliveryId: undefined }),
  ];
  expect(new Set([first, ...others]).size).toBe(7);
  expect([await start({}), await start({ payload: order('b', '1') })]).toEqual([first, first]);
  it.clock.advance(7 * 24 * 3600_000 - 1);
  expect(await start({})).toBe(first);
  it.clock.advance(1);
  expect(await start({})).not.toBe(first);
});

test('clients cannot pose as a delivery', async () => {
  const { it, gateway } = await start();
  const body = {
    webhookId: 'w',
    pluginId: '@acme/orders',
    event: 'created',
    instanceId: null,
    receivedAt: 1,
    payload: order('a', '1'),
  };
  await expect(it.call(startByDelivery, { body } as never)).rejects.toMatchObject({ code: 'FORBIDDEN' });
  const through = await gateway.fetch('/internal/workflows/deliveries', {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(through.status).toBe(404);
});

/** A gateway in a process of its own, and a relay between it and the workflow service. */
async function startKillable() {
  const projectDir = await project();
  const it = await startWorkflow({ projectDir, config: { plugins: PLUGINS } });
  const relay = await startRelay(it.url);
  const processes = await startProcesses({
    projectDir,
    config: { plugins: PLUGINS },
    gateway: { processes: 1 },
    peers: { workflow: relay.url } as never,
  });
  const gateway = { url: processes.url, call: callOf(processes.url) } as unknown as TestGateway;
  return { it, relay, processes, gateway };
}

test('a gateway that is killed between the handler and the run starts the run after its restart, once', async () => {
  const { it, relay, processes, gateway } = await startKillable();
  const secret = await provision(gateway, 'later');
  const reply = await deliver(gateway, {
    event: 'later',
    secret,
    payload: order('a-1', 'd1'),
    headers: { 'x-delivery': 'd1' },
  });
  expect(reply.status).toBe(202);
  await expect.poll(() => relay.held, { timeout: 20_000 }).toBe(1);
  expect(await runsOf(it)).toHaveLength(1);
  relay.letThrough();
  process.kill(processes.primaryPid(), 'SIGKILL');
  await expect.poll(() => relay.answered, { timeout: 30_000 }).toBe(1);
  const [run, ...more] = await runsOf(it);
  expect(more).toEqual([]);
  expect(run).toMatchObject({ trigger: 'webhook', input: { sku: 'a-1' } });
}, 60_000);

test('what a sender sends again after a kill -9 of the gateway finds the run of its id; a replay starts another', async () => {
  const { it, relay, processes, gateway } = await startKillable();
  const secret = await provision(gateway, 'created');
  const send = () => deliver(gateway, { event: 'created', secret, payload: order('a-1', 'd1') });
  const cut = expect(send()).rejects.toThrow();
  await expect.poll(() => relay.held, { timeout: 20_000 }).toBe(1);
  const [run] = await runsOf(it);
  const killed = processes.primaryPid();
  process.kill(killed, 'SIGKILL');
  await cut;
  relay.letThrough();
  const isBack = async () => (await fetch(`${gateway.url}/health`).catch(() => undefined))?.status;
  await expect.poll(isBack, { timeout: 20_000 }).toBe(200);
  expect(processes.primaryPid()).not.toBe(killed);

  const again = await send();
  expect(again.status).toBe(200);
  expect((await runsOf(it)).map(({ id }) => id)).toEqual([run!.id]);
  const params = { webhookId: again.headers.get('x-webhook-id') as never };
  expect((await gateway.call(getDelivery, { params })).outcome).toMatchObject({
    workflows: { runs: [{ workflowId: 'on-order', runId: run!.id }], refused: [] },
  });
  await gateway.call(replayDelivery, { params });
  await expect.poll(async () => (await runsOf(it)).length, { timeout: 20_000 }).toBe(2);
  expect((await send()).body).toEqual({ status: 'duplicate' });
}, 60_000);

function callOf(url: string): TestGateway['call'] {
  return async (endpoint, input) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    return createClient({ url, peer: 'gateway' }).call(endpoint, input, { headers });
  };
}

/** Before the workflow service: what starts runs reaches it, and its answers are held until they are let through. */
async function startRelay(target: string) {
  let holding = true;
  const relay = {
    url: '',
    held: 0,
    answered: 0,
    letThrough() {
      holding = false;
    },
  };
  const server = createServer(async (request, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const isStart = request.url === '/internal/workflows/deliveries';
    const answer = await fetch(target + request.url, {
      method: request.method!,
      headers: Object.entries(request.headers).filter(
        ([name]) => !['host', 'connection', 'content-length'].includes(name),
      ) as Array<[string, string]>,
      ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
    });
    const text = await answer.text();
    if (isStart && holding) {
      relay.held++;
      return;
    }
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
    if (isStart) relay.answered++;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  relay.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return relay;
}
