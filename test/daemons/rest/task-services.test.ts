import { join } from 'node:path';
import { expect, test } from 'vitest';
import { provisionWebhook, runCommand } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { createClient } from '../../../src/http/index.ts';
import { startTestAgent } from '../../agent/support.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { startTestDaemon, tempDir } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../../support/gateway.ts';
import { writeFiles } from '../marketplace/support.ts';
import { startWorkflow } from '../workflow/support/workflow.ts';
import { asCaller, startRest } from './support.ts';

const HANDLERS = `
  /** Whatever the test asks of the context. */
  export async function ask(ctx, { service, method, args }) {
    try {
      return (await ctx[service][method](...args)) ?? null;
    } catch ({ code, message, details }) {
      return { failed: code, message, details };
    }
  }
  export const work = (ctx, input) => ({ input, tenant: ctx.tenantId, user: ctx.user?.hostId ?? null });
  export const onEvent = () => 'seen';
`;

const manifest = (id: string, more: object) => ({
  schema: 'svc.plugin/3',
  id,
  version: '1.0.0',
  commands: [{ id: id.replace(/\W/g, ''), handler: 'h.js#ask' }],
  jobs: [{ id: 'work', handler: 'h.js#work' }],
  ...more,
});

const PROJECT = {
  'plugins/tasks/h.js': HANDLERS,
  'plugins/tasks/package.json': { name: 'tasks', type: 'module' },
  'plugins/tasks/svc.plugin.json': manifest('tasks', {
    permissions: {
      platform: { workflows: true, jobs: true, webhooks: true },
      invoke: ['listed/work'],
    },
    workflows: [
      {
        id: 'hold',
        inputs: { type: 'object', properties: { n: { type: 'number' } } },
        jobs: {
          main: {
            steps: [{ uses: 'signal', with: { name: 'go' } }],
          },
        },
      },
    ],
    webhooks: [
      { event: 'paid', handler: 'h.js#onEvent', auth: { type: 'secret', header: 'x-s' } },
      { event: 'shop', handler: 'h.js#onEvent', auth: { type: 'secret', header: 'x-s' }, multi: true },
    ],
  }),
  'plugins/listed/h.js': HANDLERS,
  'plugins/listed/package.json': { name: 'listed', type: 'module' },
  'plugins/listed/svc.plugin.json': manifest('listed', {}),
  'plugins/other/h.js': HANDLERS,
  'plugins/other/package.json': { name: 'other', type: 'module' },
  'plugins/other/svc.plugin.json': manifest('other', {
    permissions: { platform: { jobs: true } },
    webhooks: [{ event: 'secret', handler: 'h.js#onEvent', auth: { type: 'secret', header: 'x-s' } }],
  }),
};

/** All services but the marketplace, on one project. */
async function platform(execution: object = {}) {
  const projectDir = await writeFiles(await tempDir(), PROJECT);
  const peers = createPeers();
  const options = {
    projectDir,
    dataDir: join(projectDir, '.svc'),
    peers,
    config: { plugins: ['./plugins/*'], execution },
  };
  const keeper = await startTestDaemon(state, options);
  const workflow = await startWorkflow(options);
  const gateway = await startGateway(options);
  peers.set({ state: keeper.url, workflow: workflow.url, gateway: gateway.url });
  const rest = await startRest(options);
  const client = createClient({ url: rest.url, peer: 'rest' });

  /** What a handler of `plugin` gets, as the operator or for another tenant. */
  async function ask(
    plugin: string,
    [service, method, ...args]: [string, string, ...unknown[]],
    tenant = 'default',
  ) {
    const { result } = await client.call(
      runCommand,
      {
        params: { pluginId: plugin as never, commandId: plugin },
        body: { input: { service, method, args } },
      },
      { headers: asCaller('operator', tenant) },
    );
    return result as AnyJson;
  }
  return { gateway, workflow, ask };
}

test('a handler starts a workflow, signals it, reads it and cancels another', async () => {
  const { ask, workflow } = await platform();
  const run = await ask('tasks', ['workflows', 'start', 'hold', { n: 1 }, { idempotencyKey: 'once' }]);
  expect(run).toMatchObject({ workflowId: 'hold', status: expect.any(String), input: { n: 1 } });
  const again = await ask('tasks', ['workflows', 'start', 'hold', { n: 1 }, { idempotencyKey: 'once' }]);
  expect(again.id).toBe(run.id);
  expect(
    await ask('tasks', ['workflows', 'start', 'hold', { n: 2 }, { idempotencyKey: 'once' }]),
  ).toMatchObject({ failed: 'CONFLICT' });

  expect(await ask('tasks', ['workflows', 'signal', run.id, 'go', { ok: true }])).toBeNull();
  await workflow.until(run.id, 'succeeded');
  expect(await ask('tasks', ['workflows', 'get', run.id])).toMatchObject({ id: run.id, status: 'succeeded' });

  const second = await ask('tasks', ['workflows', 'start', 'hold']);
  expect(await ask('tasks', ['workflows', 'cancel', second.id])).toMatchObject({ cancelled: true });
  await workflow.until(second.id, 'cancelled');
  expect(await ask('tasks', ['workflows', 'cancel', second.id])).toMatchObject({
    failed: 'WORKFLOW_ALREADY_CANCELLED',
  });
  const { items } = await ask('tasks', ['workflows', 'list', { workflowId: 'hold', status: 'cancelled' }]);
  expect(items.map(({ id }: { id: string }) => id)).toEqual([second.id]);
});

test('faults of a call keep their codes', async () => {
  const { ask } = await platform();
  const failed = async (...call: [string, string, ...unknown[]]) => (await ask('tasks', call)).failed;
  expect(await failed('workflows', 'start', 'nothing')).toBe('WORKFLOW_NOT_FOUND');
  expect(await failed('workflows', 'start', 'hold', { n: 'no number' })).toBe('VALIDATION_ERROR');
  expect(await failed('workflows', 'start', 'hold', {}, { definition: {} })).toBe('VALIDATION_ERROR');
  expect(await failed('workflows', 'start', { id: 'hold' })).toBe('VALIDATION_ERROR');
  expect(await failed('workflows', 'get', 'run_nothing')).toBe('WORKFLOW_RUN_NOT_FOUND');
  expect(await failed('workflows', 'get', '..')).toBe('VALIDATION_ERROR');
  expect(await failed('jobs', 'submit', 'nothing')).toBe('JOB_NOT_FOUND');
  expect(await failed('jobs', 'get', 'job_nothing')).toBe('JOB_NOT_FOUND');
});

test('a call is made for its own tenant: another tenant sees no trace of it', async () => {
  const { ask } = await platform();
  const run = await ask('tasks', ['workflows', 'start', 'hold', {}, { idempotencyKey: 'k' }]);
  const job = await ask('tasks', ['jobs', 'submit', 'work']);
  expect(await ask('tasks', ['workflows', 'get', run.id], 'globex')).toMatchObject({
    failed: 'WORKFLOW_RUN_NOT_FOUND',
  });
  expect(await ask('tasks', ['workflows', 'cancel', run.id], 'globex')).toMatchObject({
    failed: 'WORKFLOW_RUN_NOT_FOUND',
  });
  expect(await ask('tasks', ['jobs', 'get', job.id], 'globex')).toMatchObject({ failed: 'JOB_NOT_FOUND' });
  expect((await ask('tasks', ['workflows', 'list'], 'globex')).items).toEqual([]);
  const theirs = await ask('tasks', ['workflows', 'start', 'hold', {}, { idempotencyKey: 'k' }], 'globex');
  expect(theirs.id).not.toBe(run.id);
});

test("jobs: the plugin's own, and those listed in permissions.invoke", async () => {
  const { ask } = await platform();
  const job = await ask('tasks', ['jobs', 'submit', 'work', { a: 1 }]);
  await expect
    .poll(() => ask('tasks', ['jobs', 'get', job.id]))
    .toMatchObject({ status: 'succeeded', result: { input: { a: 1 }, tenant: 'default', user: 'operator' } });

  const listed = await ask('tasks', ['jobs', 'submit', 'listed/work']);
  expect(listed.handler).toBe('listed/work');
  expect(await ask('tasks', ['jobs', 'submit', 'other/work'])).toMatchObject({
    failed: 'PERMISSION_DENIED',
    details: { permission: 'permissions.invoke' },
  });

  const theirs = await ask('other', ['jobs', 'submit', 'work', {}, { runAt: 4e12 }]);
  expect(await ask('tasks', ['jobs', 'get', theirs.id])).toMatchObject({ failed: 'JOB_NOT_FOUND' });
  expect(await ask('tasks', ['jobs', 'cancel', theirs.id])).toMatchObject({ failed: 'JOB_NOT_FOUND' });
  expect(await ask('other', ['jobs', 'cancel', theirs.id])).toMatchObject({ cancelled: true });
});

test('two plugins, or two kinds of call, may use the same idempotency key', async () => {
  const { ask } = await platform();
  const options = { idempotencyKey: 'daily', runAt: 4e12 };
  const ours = await ask('tasks', ['jobs', 'submit', 'work', {}, options]);
  const theirs = await ask('other', ['jobs', 'submit', 'work', {}, options]);
  expect(theirs).toMatchObject({ handler: 'other/work' });
  expect(theirs.id).not.toBe(ours.id);
  expect((await ask('tasks', ['jobs', 'submit', 'work', {}, options])).id).toBe(ours.id);
  const listed = await ask('tasks', ['jobs', 'submit', 'listed/work', {}, options]);
  const run = await ask('tasks', ['workflows', 'start', 'hold', {}, options]);
  expect(new Set([ours.id, theirs.id, listed.id, run.id]).size).toBe(4);
});

test("webhooks: the plugin's own, with their addresses and without secrets", async () => {
  const { ask, gateway } = await platform();
  const body = { pluginId: 'tasks' as never, event: 'shop' as never, instanceId: 'berlin' as never };
  const { url, secret } = await gateway.call(provisionWebhook, { body });
  const items = await ask('tasks', ['webhooks', 'list']);
  expect(items).toEqual([
    {
      event: 'paid',
      multi: false,
      auth: 'secret',
      paused: false,
      provisioned: false,
      url: expect.stringMatching(/\/webhooks\/tasks\/paid$/),
      instances: [],
    },
    expect.objectContaining({
      event: 'shop',
      multi: true,
      instances: [{ instanceId: 'berlin', provisioned: true, url }],
    }),
  ]);
  expect(JSON.stringify(items)).not.toContain(secret);
  expect((await ask('tasks', ['webhooks', 'list'], 'globex'))[1].instances).toEqual([]);
});

test('the list for other services is not for clients', async () => {
  const { gateway } = await platform();
  const path = '/internal/plugins/tasks/webhooks';
  expect((await gateway.fetch(path)).status).toBe(401);
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'x-svc-service-key': 'guessed' };
  expect((await gateway.fetch(path, { headers })).status).toBe(401);
});

test.each(['workflows', 'jobs', 'webhooks'])('ctx.%s must be requested in the manifest', async (service) => {
  const { ask } = await platform();
  const method = { workflows: 'start', jobs: 'submit', webhooks: 'list' }[service]!;
  expect(await ask('listed', [service, method, 'work'])).toMatchObject({
    failed: 'PERMISSION_DENIED',
    details: { permission: `permissions.platform.${service}` },
  });
});

test('the same on a host', async () => {
  const { ask, gateway, workflow } = await platform({ plugins: { tasks: { backend: 'host' } } });
  await startTestAgent(gateway);
  const run = await ask('tasks', ['workflows', 'start', 'hold']);
  expect(await ask('tasks', ['workflows', 'signal', run.id, 'go'])).toBeNull();
  await workflow.until(run.id, 'succeeded');
  expect(await ask('tasks', ['workflows', 'get', 'run_nothing'])).toMatchObject({
    failed: 'WORKFLOW_RUN_NOT_FOUND',
  });
  expect((await ask('tasks', ['webhooks', 'list'])).map(({ event }: { event: string }) => event)).toEqual([
    'paid',
    'shop',
  ]);
});
