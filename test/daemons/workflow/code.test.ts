import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** A project with one plugin `code` whose workflows are the exports of `source`. */
async function startWithCode(
  source: string,
  manifest: object = {},
): Promise<TestWorkflow & { folder: string }> {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/code');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"name": "code", "version": "1.0.0", "type": "module"}');
  await writeFile(
    join(folder, 'flows.js'),
    `import { defineWorkflow, z } from 'svc-platform/sdk';\n${source}`,
  );
  const ids = [...source.matchAll(/id: '(\w+)'/g)].map(([, id]) => id);
  await writeFile(
    join(folder, 'svc.plugin.json'),
    JSON.stringify({
      schema: 'svc.plugin/3',
      id: 'code',
      version: '1.0.0',
      workflows: ids.map((id) => ({ id, handler: `flows.js#${id}` })),
      ...manifest,
    }),
  );
  return { ...(await startWorkflow({ projectDir })), folder };
}

async function begin(it: TestWorkflow, workflowId: string, input: unknown = {}): Promise<string> {
  return (await it.call(startRun, { body: { workflowId, input } as never })).run.id;
}

const idsOf = async (it: TestWorkflow, id: string) =>
  (await it.steps(id)).map((step) => `${step.id} ${step.status}`);

describe('a workflow in code', () => {
  test('runs its steps in order, and its return value is the output of the run', async () => {
    const it = await startWithCode(`
      export const order = defineWorkflow({
        id: 'order',
        input: z.object({ total: z.number() }),
        run: async (ctx, { total }) => {
          const charge = await ctx.step('charge', () => ({ paid: total, at: new Date(0) }));
          const sent = await ctx.step('send', ({ idempotencyKey }) => idempotencyKey);
          return { charge, sent };
        },
      });`);
    const id = await begin(it, 'order', { total: 12 });
    const run = await it.until(id, 'succeeded', 'failed');
    expect(run.error).toBeNull();
    expect(run.output).toEqual({
      charge: { paid: 12, at: '1970-01-01T00:00:00.000Z' },
      sent: `${id}/main.send`,
    });
    expect(await idsOf(it, id)).toEqual(['main.charge succeeded', 'main.send succeeded']);
    expect(run.jobs).toMatchObject([{ id: 'main', status: 'succeeded' }]);
  });

  test('waits without a process, and goes on from its first line with what it knows', async () => {
    const it = await startWithCode(`
      let passes = 0;
      export const waits = defineWorkflow({
        id: 'waits',
        run: async (ctx) => {
          passes++;
          const before = await ctx.step('before', () => Math.random());
          await ctx.sleep(60_000);
          const { payload } = await ctx.waitForSignal('go');
          const { by } = await ctx.approval('ship', { message: 'Ship it?' });
          return { before, payload, by, passes, draws: [ctx.random(), ctx.uuid()], now: ctx.now() };
        },
      });`);
    const id = await begin(it, 'waits');
    await it.until(id, 'waiting');
    expect(it.services.engine.activeRuns).toBe(0);
    const [before] = await it.steps(id);
    it.clock.advance(60_000);
    await it.services.engine.tick();
    await expect.poll(() => idsOf(it, id)).toContain('main.go waiting');
    await it.services.desk.signal('default', id, 'go', { a: 1 });
    await expect.poll(() => idsOf(it, id)).toContain('main.ship waiting');
    await it.services.desk.approve('default', id, 'main.ship', { approved: true, by: 'ann', comment: null });
    const { output } = await it.until(id, 'succeeded', 'failed');
    expect(output).toMatchObject({ before: before!.output, payload: { a: 1 }, by: 'ann', passes: 4 });
  });
});
