import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createPeers } from '../../../src/daemons/peers.ts';
import { entryFile } from '../../../src/kit/files/paths.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { startCode } from './support/code.ts';

const SOURCE = `
  export const order = defineWorkflow({
    id: 'order',
    input: z.object({
      items: z.array(z.object({ sku: z.string(), count: z.coerce.number().int() })).min(1),
      from: z.string().default('shelf'),
      to: z.string().transform((text) => text.length),
    }).refine(({ from, to }) => from.length !== to, { message: 'goes nowhere', path: ['to'] }),
    run: async (ctx, input) => ctx.step('see', () => input),
  });
  export const parent = defineWorkflow({
    id: 'parent',
    run: async (ctx) => ctx.runWorkflow('order', { items: [], to: 'door' }),
  });
  export const launch = defineCommand((ctx, input) => ctx.workflows.start('order', input));`;

const LAUNCHER = {
  commands: [{ id: 'launch', handler: 'flows.js#launch' }],
  permissions: { platform: { workflows: true } },
};
const wrong = { items: [{ sku: 7, count: '2' }], to: 'me' };
const faults = [{ path: 'input.items[0].sku', message: expect.stringContaining('must be a string') }];

test('starting with an input that fails the schema in code is 400 with every path, and creates no run', async () => {
  const it = await startCode(SOURCE);
  const post = async (input: unknown) => {
    const response = await it.fetch('/api/v1/workflows/runs', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ workflowId: 'order', input }),
    });
    return { status: response.status, body: await response.json() };
  };
  expect(await post(wrong)).toMatchObject({
    status: 400,
    body: { error: { code: 'VALIDATION_ERROR', details: { issues: faults } } },
  });
  // What no JSON Schema can say: a rule over two fields.
  expect((await post({ items: [{ sku: 'a', count: 1 }], to: 'place' })).body).toMatchObject({
    error: { message: 'input.to: goes nowhere', details: { issues: [{ path: 'input.to' }] } },
  });
  expect((await it.services.runs.list('default', { limit: 9 })).items).toEqual([]);
});

test('only the function sees the parsed input: coerced, defaulted, transformed', async () => {
  const it = await startCode(SOURCE);
  const input = { items: [{ sku: 'a', count: '2' }], to: 'door' };
  const run = await it.until(await it.begin('order', input), 'succeeded', 'failed');
  expect(run).toMatchObject({ input, output: { items: [{ count: 2 }], from: 'shelf', to: 4 } });
});

test('the command line, plugins and parents get the same error', async () => {
  const peers = createPeers();
  const it = await startCode(SOURCE, LAUNCHER, {}, { peers });
  peers.set({ workflow: it.url });
  const told = await new Promise<string>((resolve) => {
    const args = ['workflows', 'run', 'order', '--input', JSON.stringify(wrong), '--json'];
    execFile(
      process.execPath,
      [entryFile('cli'), ...args, '--url', it.url, '--token', 'any'],
      { env: { PATH: process.env.PATH } },
      (_, stdout) => resolve(stdout),
    );
  });
  expect(JSON.parse(told).error).toMatchObject({ code: 'VALIDATION_ERROR', details: { issues: faults } });

  const launched = await it.until(
    await it.start({ steps: [{ id: 'go', uses: 'code/launch', with: wrong }] }),
    'failed',
  );
  expect((launched.error!.details as { error: unknown }).error).toMatchObject({
    message: expect.stringContaining('input.items[0].sku'),
  });

  const parent = await it.until(await it.begin('parent'), 'failed');
  expect(parent.error).toMatchObject({
    code: 'STEP_FAILED',
    details: { error: { code: 'VALIDATION_ERROR', details: { issues: [{ path: 'input.items' }] } } },
  });
});

test('a function without a schema needs no process for the check, and a reloaded one is queried again', async () => {
  const plain = "export const flow = defineWorkflow({ id: 'flow', run: () => 1 });";
  const it = await startCode(plain);
  const { describer } = it.services.plugins;
  let asked = 0;
  const { input } = describer;
  describer.input = (...args) => {
    asked++;
    return input(...args);
  };
  for (let round = 0; round < 3; round++) await it.begin('flow', { n: 'any' });
  expect(asked).toBe(1);
  await it.rewrite(
    "export const flow = defineWorkflow({ id: 'flow', input: z.object({ n: z.number() }), run: () => 1 });",
  );
  await expect(it.begin('flow', { n: 'any' })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('a schema that throws leaves validation to the run; one that never ends is 400', async () => {
  const it = await startCode(
    `export const slow = defineWorkflow({ id: 'slow', input: z.any().refine(() => new Promise(() => {})), run: () => 1 });
     export const odd = defineWorkflow({ id: 'odd', input: z.any().refine(() => { throw new Error('a fault of ours'); }), run: () => 1 });`,
  );
  const run = await it.until(await it.begin('odd'), 'failed');
  expect(run.error?.message).toContain('a fault of ours');
  expect(it.logs.lines.some(({ message }) => String(message).includes('could not be checked before'))).toBe(
    true,
  );

  // The process is there by now: its start does not count against the moved clock.
  const refused = expect(it.begin('slow')).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringMatching(/^input: could not be checked in time/),
  });
  const over = refused.then(() => true);
  while (!(await Promise.race([over, pause(20, false)]))) it.clock.advance(seconds(1));
});
