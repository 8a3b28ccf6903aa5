import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestHost, type TestHostOptions } from '../../src/testing/index.ts';
import { requireSupportedNode } from '../../src/testing/node-version.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

const COMMANDS = join(import.meta.dirname, '../fixtures/projects/commands/plugins');

async function host(options: TestHostOptions) {
  const started = await createTestHost(options);
  onTestFinished(() => started.close());
  return started;
}

const PLUGIN = {
  'package.json': { name: '@acme/demo', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: '@acme/demo',
    version: '1.0.0',
    commands: [
      { id: 'remember', handler: 'h.js#remember' },
      { id: 'recall', handler: 'h.js#recall' },
      { id: 'config', handler: 'h.js#config' },
      { id: 'passwd', handler: 'h.js#passwd' },
      { id: 'hang', handler: 'h.js#hang', timeoutMs: 5000 },
    ],
    jobs: [{ id: 'tidy', handler: 'h.js#tidy' }],
    rest: {
      basePath: '/v1/plugins/demo',
      routes: [{ method: 'GET', path: '/who/:id', handler: 'h.js#who', security: ['user', 'none'] }],
    },
  },
  'h.js': `
    import { readFileSync } from 'node:fs';
    export const remember = (ctx, value) => ctx.cache.set('value', value, { ttlMs: 60_000 });
    export const recall = async (ctx) => (await ctx.cache.get('value')) ?? null;
    export const config = (ctx) => { ctx.log.warn('asked', { by: ctx.user?.hostId }); return ctx.config; };
    export const passwd = () => readFileSync('/etc/passwd', 'utf8');
    export const hang = (ctx) => {
      ctx.log.info('hanging');
      return new Promise(() => {});
    };
    export const tidy = (ctx, input) => ({ host: ctx.host, input });
    export const who = (ctx, query) => ({ user: ctx.user, params: ctx.params, query, tenant: ctx.tenantId });`,
};

test('handlers run in the sandbox with a state store that uses the clock of the test', async () => {
  const demo = await host({
    plugin: await writeFiles(await tempDir(), PLUGIN),
    config: { colour: 'green' },
  });
  expect(demo.manifest.id).toBe('@acme/demo');
  await demo.command('remember', { a: 1 });
  expect((await demo.command('recall')).result).toEqual({ a: 1 });
  demo.advance(60_001);
  expect((await demo.command('recall')).result).toBeNull();

  expect((await demo.command('config')).result).toEqual({ colour: 'green' });
  expect(demo.logs).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      message: 'asked',
      pluginId: '@acme/demo',
      meta: { by: 'tester' },
    }),
  );
  await expect(demo.command('passwd')).rejects.toMatchObject({
    code: expect.stringMatching(/PERMISSION_DENIED|EXECUTION_ERROR/),
  });
  expect((await demo.job('tidy', { n: 1 })).result).toEqual({ host: 'job', input: { n: 1 } });
  await expect(demo.job('absent')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  await expect(demo.command('absent')).rejects.toMatchObject({ code: 'NOT_FOUND' });

  expect(await demo.route('GET', '/who/7', { query: { q: 'x' }, tenantId: 'acme' })).toMatchObject({
    status: 200,
    body: {
      user: { hostId: 'tester', namespaceId: 'acme' },
      params: { id: '7' },
      query: { q: 'x' },
      tenant: 'acme',
    },
  });
  expect(await demo.route('GET', '/who/7', { user: null })).toMatchObject({ body: { user: null } });
  expect((await demo.route('GET', '/none')).status).toBe(404);
});

test('a call times out when the test moves the clock past its limit', async () => {
  const demo = await host({ plugin: await writeFiles(await tempDir(), PLUGIN) });
  await demo.command('recall');
  const hanging = expect(demo.command('hang')).rejects.toMatchObject({ code: 'EXECUTION_TIMEOUT' });
  await expect.poll(() => demo.logs.map(({ message }) => message)).toContain('hanging');
  demo.advance(5001);
  await hanging;
});

test('other plugins can be invoked, and a manifest may be a module', async () => {
  const greeter = await host({
    plugin: join(COMMANDS, 'greeter'),
    plugins: [join(COMMANDS, 'counter')],
  });
  expect((await greeter.command('count-greetings', { add: 1 })).result).toMatchObject({
    total: { counted: 2 },
  });
});

test('a plugin that cannot be loaded is reported with the reason', async () => {
  const folder = await writeFiles(await tempDir(), { 'svc.plugin.json': { schema: 'svc.plugin/3' } });
  await expect(createTestHost({ plugin: folder })).rejects.toMatchObject({
    code: 'INVALID_MANIFEST',
    message: expect.stringContaining('version'),
  });
});

const TASKS = {
  'package.json': { name: 'tasks', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'tasks',
    version: '1.0.0',
    permissions: { platform: { workflows: true, jobs: true, webhooks: true } },
    commands: [{ id: 'begin', handler: 'h.js#begin' }],
    jobs: [{ id: 'tidy', handler: 'h.js#tidy' }],
    webhooks: [{ event: 'paid', handler: 'h.js#paid', auth: { type: 'secret', header: 'x-s' } }],
    workflows: [
      {
        id: 'remind',
        jobs: {
          main: {
            steps: [
              { uses: 'wait', with: { ms: 3_600_000 } },
              { uses: 'set', with: { a: 1 } },
            ],
          },
        },
      },
    ],
  },
  'h.js': `
    export async function begin(ctx) {
      const run = await ctx.workflows.start('remind');
      const job = await ctx.jobs.submit('tidy', { n: 3 });
      const [{ event, url, provisioned }] = await ctx.webhooks.list();
      return { run: run.id, job: job.id, event, url, provisioned };
    }
    export const tidy = (ctx, { n }) => ({ twice: 2 * n });
    export const paid = () => {};`,
};

test('workflows, jobs and webhooks use the real services', async () => {
  const tasks = await host({ plugin: await writeFiles(await tempDir(), TASKS) });
  const { result } = await tasks.command('begin');
  const { run, job, ...webhook } = result as Record<string, string>;
  expect(webhook).toMatchObject({ event: 'paid', provisioned: false });
  expect(webhook.url).toMatch(/\/webhooks\/tasks\/paid$/);
  expect(await tasks.settled(job!)).toMatchObject({ status: 'succeeded', result: { twice: 6 } });

  expect((await tasks.settled(run!)).status).toBe('waiting');
  tasks.advance(3_600_000);
  expect((await tasks.settled(run!)).status).toBe('succeeded');

  const own = await tasks.workflow('remind');
  expect(await tasks.settled(own.id)).toMatchObject({ workflowId: 'remind', status: 'waiting' });
});

const SHIPPING = {
  'package.json': { name: 'shipping', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'shipping',
    version: '1.0.0',
    permissions: { platform: { workflows: true } },
    workflows: [
      { id: 'ship', handler: 'w.js#ship' },
      { id: 'outer', jobs: { main: { steps: [{ id: 'inner', uses: 'workflow', with: { id: 'nap' } }] } } },
      { id: 'nap', jobs: { main: { steps: [{ uses: 'wait', with: { ms: 1000 } }] } } },
    ],
  },
  'w.js': `
    import { defineWorkflow } from 'svc-platform/sdk';
    export const ship = defineWorkflow({
      id: 'ship',
      async run(ctx) {
        const { payload } = await ctx.waitForSignal('packed');
        const { by, comment } = await ctx.approval('leave', { timeoutMs: 1000 });
        return { payload, by, comment };
      },
    });`,
};

describe('a run that waits for a signal or an approval', () => {
  test('gets its signal and approval, and settles when it waits again', async () => {
    const shipping = await host({ plugin: await writeFiles(await tempDir(), SHIPPING) });
    const run = await shipping.workflow('ship');
    expect(await shipping.settled(run.id)).toMatchObject({ status: 'waiting' });
    await shipping.signal(run.id, 'packed', { boxes: 2 });
    expect(await shipping.settled(run.id)).toMatchObject({ status: 'waiting' });
    await shipping.approve(run.id, 'main.leave', { comment: 'go', user: 'ann' });
    expect(await shipping.settled(run.id)).toMatchObject({
      status: 'succeeded',
      output: { payload: { boxes: 2 }, by: 'ann', comment: 'go' },
    });
    await expect(shipping.signal(run.id, 'packed')).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(shipping.approve(run.id, 'main.leave')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('can be rejected or time out', async () => {
    const shipping = await host({ plugin: await writeFiles(await tempDir(), SHIPPING) });
    const [refused, late] = [await shipping.workflow('ship'), await shipping.workflow('ship')];
    for (const run of [refused, late]) {
      await shipping.signal(run.id, 'packed');
      await shipping.settled(run.id);
    }
    await shipping.approve(refused.id, 'main.leave', { approved: false });
    expect(await shipping.settled(refused.id)).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('refused') },
    });
    shipping.advance(1000);
    expect(await shipping.settled(late.id)).toMatchObject({
      status: 'failed',
      error: { code: 'STEP_FAILED' },
    });
  });

  test('settles together with its parent', async () => {
    const shipping = await host({ plugin: await writeFiles(await tempDir(), SHIPPING) });
    const outer = await shipping.workflow('outer');
    expect((await shipping.settled(outer.id)).status).toBe('waiting');
    shipping.advance(1000);
    expect((await shipping.settled(outer.id)).status).toBe('succeeded');
  });
});

test('an unsupported version of Node is rejected with a remedy before native code is loaded', () => {
  expect(() => requireSupportedNode('20.20.2')).toThrow(
    /needs Node 22\.19 or newer; this is 20\.20\.2 .*npm test/,
  );
  expect(() => requireSupportedNode('22.18.9')).toThrow('this is 22.18.9');
  for (const version of ['22.19.0', '24.0.0', '26.10.0']) requireSupportedNode(version);
});

test('emitted messages are recorded by tenant, and their data is checked', async () => {
  const shop = await host({
    plugin: await writeFiles(await tempDir(), {
      'package.json': { name: '@acme/shop', type: 'module' },
      'svc.plugin.json': {
        schema: 'svc.plugin/3',
        id: '@acme/shop',
        version: '1.0.0',
        permissions: { platform: { emit: true } },
        commands: [{ id: 'pay', handler: 'h.js#pay' }],
        events: { 'order.paid': { schema: { type: 'object', required: ['id'] } } },
      },
      'h.js': `export const pay = (ctx, data) => ctx.emit('order.paid', data, { application: 'c-7' });`,
    }),
  });
  expect(await shop.emitted()).toEqual([]);
  const { result } = await shop.command<{ id: string }>('pay', { id: 'o1' });
  await shop.command('pay', { id: 'o2' });
  await shop.command('pay', { id: 'o3' }, { tenantId: 'other' });
  await expect(shop.command('pay', {})).rejects.toMatchObject({
    details: { code: 'VALIDATION_ERROR' },
  });
  expect(await shop.emitted()).toMatchObject([
    { id: result!.id, type: 'order.paid', data: { id: 'o1' }, application: 'c-7' },
    { data: { id: 'o2' } },
  ]);
  expect((await shop.emitted({ tenantId: 'other' })).map(({ data }) => data)).toEqual([{ id: 'o3' }]);
});
