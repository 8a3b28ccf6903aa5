import { describe, expect, test } from 'vitest';
import {
  getMessage,
  listMessages,
  provisionWebhook,
  publishMessage,
  runCommand,
  startRun,
  submitJob,
} from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { createClient } from '../../src/http/index.ts';
import { startTestAgent } from '../agent/support.ts';
import { asCaller, startRest } from '../daemons/rest/support.ts';
import { writeCodePlugin } from '../daemons/workflow/support/code.ts';
import { startWorkflow } from '../daemons/workflow/support/workflow.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { useEngine } from '../support/containers.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { OTHER_TOKEN, startGateway } from '../support/gateway.ts';

const SOURCE = `
  const caught = async (call) => {
    try { return await call(); } catch ({ code, message, details }) { return { failed: code, message, details }; }
  };
  export const emit = async (ctx, args) => caught(() => ctx.emit(...args));
  export const route = (ctx, body) => caught(() => ctx.emit(body.type, body.data));
  export const hook = (ctx, body) => ctx.emit('order.paid', body, { idempotencyKey: ctx.hostContext.webhookId });
  export const job = async (ctx, input) => {
    await ctx.emit('order.paid', { id: input.id, at: Math.random() });
    if (ctx.hostContext.attempt === 1) throw Object.assign(new Error('again'), { code: 'AGAIN' });
  };
  export const twice = async (ctx, { id }) => {
    const first = await ctx.emit('order.paid', { id: id + '-1', at: ctx.hostContext.attempt });
    const second = await ctx.emit('order.paid', { id: id + '-2' });
    if (ctx.hostContext.attempt === 1) throw Object.assign(new Error('again'), { code: 'AGAIN' });
    return [first, second];
  };
  export const flow = defineWorkflow({
    id: 'flow',
    run: async (ctx, { id }) => {
      await ctx.emit('order.paid', { id: id + '-outside' });
      const inStep = await ctx.step('tell', async ({ attempt }) => {
        const { duplicate } = await ctx.emit('order.paid', { id: id + '-inside' });
        await ctx.emit('order.paid', { id: id + '-inside-2' });
        if (attempt === 1) throw new Error('again');
        return duplicate;
      }, { retry: { maxAttempts: 2, initialMs: 1 } });
      await ctx.all([
        async () => { await ctx.sleep(0); await ctx.emit('order.paid', { id: id + '-left' }); },
        async () => { await ctx.sleep(0); await ctx.emit('order.paid', { id: id + '-right' }); },
      ]);
      await ctx.sleep(0);
      return inStep;
    },
  });`;

const RETRY = { maxAttempts: 2, initialMs: 1 };
const MANIFEST = {
  permissions: { platform: { emit: true } },
  events: {
    'order.paid': {
      schema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
    },
  },
  commands: [
    { id: 'emit', handler: 'flows.js#emit' },
    { id: 'mute', handler: 'flows.js#emit', permissions: {} },
    { id: 'twice', handler: 'flows.js#twice', idempotent: true },
  ],
  jobs: [{ id: 'job', handler: 'flows.js#job', idempotent: true }],
  rest: {
    basePath: '/v1/plugins/code',
    routes: [{ method: 'POST', path: '/emit', handler: 'flows.js#route', security: ['user'] }],
  },
  webhooks: [{ event: 'hook', handler: 'flows.js#hook', auth: { type: 'secret', header: 'x-token' } }],
};

async function platform(execution: Record<string, unknown> = {}) {
  const projectDir = await tempDir();
  await writeCodePlugin(projectDir, SOURCE, MANIFEST);
  const config = { execution };
  const keeper = await startTestDaemon(state);
  const peers = createPeers({ state: keeper.url });
  const gateway = await startGateway({ projectDir, peers, config });
  const it = await startWorkflow({ projectDir, config, peers: createPeers({ gateway: gateway.url }) });
  peers.set({ workflow: it.url, gateway: gateway.url });
  const rest = await startRest({ projectDir, config, peers });
  const client = createClient({ url: rest.url, peer: 'rest' });

  /** What the command gets that emits with these arguments. */
  async function emit(args: unknown[], { command = 'emit', tenant = 'default' } = {}) {
    const { result } = await client.call(
      runCommand,
      { params: { pluginId: 'code' as never, commandId: command }, body: { input: args as never } },
      { headers: asCaller('operator', tenant) },
    );
    return result as { id: string; duplicate: boolean; failed?: string; details?: object };
  }
  /** The data of all messages, oldest first. */
  async function emitted(token?: string): Promise<Array<{ id: string }>> {
    const { items } = await gateway.call(listMessages, { query: { limit: 200 } }, token);
    const found = await Promise.all(
      items.reverse().map(({ id }) => gateway.call(getMessage, { params: { id: id as never } }, token)),
    );
    return found.map(({ data }) => data as { id: string });
  }
  return { gateway, it, rest, emit, emitted };
}

const ids = (data: Array<{ id: string }>) => data.map(({ id }) => id).sort();

test('a command emits to its own tenant, once per key', async () => {
  const { emit, emitted } = await platform();
  const first = await emit(['order.paid', { id: 'a' }, { idempotencyKey: 'k' }]);
  expect(first).toEqual({ id: expect.stringMatching(/^msg_/), duplicate: false });
  expect(await emit(['order.paid', { id: 'a' }, { idempotencyKey: 'k' }])).toEqual({
    id: first.id,
    duplicate: true,
  });
  expect(await emit(['order.paid', { id: 'b' }, { idempotencyKey: 'k' }])).toMatchObject({
    failed: 'CONFLICT',
  });
  expect(await emit(['order.paid', { id: 'a' }, { idempotencyKey: 'k' }], { tenant: 'other' })).toMatchObject(
    {
      duplicate: false,
    },
  );
  await emit(['order.paid', { id: 'c' }]);
  await emit(['order.paid', { id: 'c' }]);
  expect(await emitted()).toEqual([{ id: 'a' }, { id: 'c' }, { id: 'c' }]);
  expect(await emitted(OTHER_TOKEN)).toEqual([{ id: 'a' }]);
});

test('faults of a call say what to do', async () => {
  const { emit, emitted } = await platform();
  const failed = (args: unknown[], options?: object) => emit(args, options);
  expect(await failed(['order.paid', { id: 'a' }], { command: 'mute' })).toMatchObject({
    failed: 'PERMISSION_DENIED',
    details: { permission: 'permissions.platform.emit' },
  });
  expect(await failed(['order.payd', { id: 'a' }])).toMatchObject({
    failed: 'PERMISSION_DENIED',
    details: { permission: 'events', type: 'order.payd' },
    message: expect.stringContaining('Did you mean "order.paid"?'),
  });
  expect(await failed(['order.paid', { id: 7 }])).toMatchObject({
    failed: 'VALIDATION_ERROR',
    details: { issues: [{ path: 'data.id' }] },
  });
  for (const args of [
    ['not a type', {}],
    ['constructor', {}],
    ['order.paid', { id: 'a' }, { namespaceId: 'other' }],
    ['order.paid', { id: 'a' }, { application: 'two words' }],
    ['order.paid', { id: 'a' }, { idempotencyKey: '' }],
    [{}, { id: 'a' }],
  ])
    expect((await failed(args)).failed).toMatch(/^(?:VALIDATION_ERROR|PERMISSION_DENIED)$/);
  expect(await failed(['order.paid', { id: 'x'.repeat(300_000) }])).toMatchObject({
    failed: 'PAYLOAD_TOO_LARGE',
  });
  expect(await emitted()).toEqual([]);
});

test('API callers may send undeclared types, and data of declared ones is checked', async () => {
  const { gateway } = await platform();
  const send = (type: string, data: unknown) =>
    gateway.call(publishMessage, { body: { type, data } as never });
  await send('other.thing', { any: true });
  await expect(send('order.paid', { id: 7 })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    details: { issues: [{ path: 'data.id' }] },
  });
});

test('the call of services is not for clients', async () => {
  const { gateway } = await platform();
  const answer = (headers: Record<string, string>) =>
    gateway.fetch('/internal/plugins/code/messages', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ type: 'order.paid', data: { id: 'a' } }),
    });
  expect((await answer({})).status).toBe(401);
  expect((await answer({ authorization: 'Bearer test-admin-token' })).status).toBe(401);
  expect((await answer({ 'x-svc-service-key': 'guessed' })).status).toBe(401);
});

async function everyHost({ gateway, it, rest, emit, emitted }: Awaited<ReturnType<typeof platform>>) {
  expect(await emit(['order.paid', { id: 'command' }])).toMatchObject({ duplicate: false });
  const route = await rest.fetch('/api/v1/plugins/code/emit', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...asCaller('operator') },
    body: JSON.stringify({ type: 'order.paid', data: { id: 'route' } }),
  });
  expect(route.status).toBe(200);

  const { secret } = await gateway.call(provisionWebhook, {
    body: { pluginId: 'code', event: 'hook' } as never,
  });
  const delivered = await gateway.fetch('/webhooks/code/hook', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-token': secret, 'x-svc-namespace': 'default' },
    body: JSON.stringify({ id: 'webhook' }),
  });
  expect(delivered.status).toBe(200);

  const done = (id: string) =>
    expect.poll(async () => (await it.run(id)).status, { timeout: 60_000 }).toMatch(/succeeded|failed/);
  const { job } = await it.call(submitJob, {
    body: { handler: 'code/job', input: { id: 'job' }, retry: RETRY } as never,
  });
  await expect
    .poll(
      () => {
        it.clock.advance(10);
        return emitted().then((all) => ids(all).includes('job'));
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  const run = await it.start({
    steps: [{ id: 's', uses: 'code/twice', with: { id: 'step' }, retry: RETRY, timeoutMs: 60_000 }],
  });
  const { run: coded } = await it.call(startRun, {
    body: { workflowId: 'flow', input: { id: 'flow' } } as never,
  });
  const ticking = setInterval(() => it.clock.advance(10), 20);
  try {
    for (const id of [job.id, run, coded.id]) await done(id);
  } finally {
    clearInterval(ticking);
  }
  expect(await it.step(run, 'main.s')).toMatchObject({
    attempts: 2,
    output: [{ duplicate: true }, { duplicate: true }],
  });
  expect(await it.run(coded.id)).toMatchObject({ status: 'succeeded', output: true });
  expect(ids(await emitted())).toEqual([
    'command',
    'flow-inside',
    'flow-inside-2',
    'flow-left',
    'flow-outside',
    'flow-right',
    'job',
    'route',
    'step-1',
    'step-2',
    'webhook',
  ]);
}

test('every kind of handler emits, and retried steps emit once', async () => {
  await everyHost(await platform());
}, 120_000);

test('the same on a host behind its agent', async () => {
  const parts = await platform({ plugins: { code: { backend: 'host' } } });
  await startTestAgent(parts.gateway);
  await everyHost(parts);
}, 120_000);

describe.skipIf(engineMissing !== undefined)('in containers', () => {
  let engine: TestEngine;
  useEngine('podman', (started) => {
    engine = started;
  });

  test('every kind of handler emits, too', async () => {
    const container = { socket: engine.socket, network: 'host' };
    await everyHost(await platform({ container, plugins: { code: { backend: 'container' } } }));
  }, 240_000);
});
