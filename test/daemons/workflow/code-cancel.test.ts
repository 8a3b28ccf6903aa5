import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode } from './support/code.ts';
import { startWorkflow } from './support/workflow.ts';

const source = (body: string) => `
  import { CancelledError } from 'svc-platform/sdk';
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  export const flow = defineWorkflow({ id: 'flow', run: async (ctx, input) => { ${body} } });`;

async function start(body: string, manifest: Record<string, unknown> = {}) {
  const it = await startCode(source(body), manifest);
  return {
    ...it,
    cancel: (id: string) => it.services.runs.cancel('default', id),
    /** Cancels a run once it has these steps, and waits for its end. */
    async cancelAt(state: string, status = 'cancelled', ...others: string[]) {
      const id = await it.begin('flow');
      await expect.poll(() => it.states(id)).toEqual(expect.arrayContaining([state, ...others]));
      await it.services.runs.cancel('default', id);
      return { id, run: await it.until(id, status), states: await it.states(id) };
    },
  };
}

describe('a function of a cancelled run', () => {
  test('gets a CancelledError at its await, and its catch and finally run steps', async () => {
    const it = await start(`
      await ctx.step('reserve', () => 1);
      try {
        await ctx.waitForSignal('never');
      } catch (error) {
        await ctx.step('undo', () => 2);
        await ctx.sleep('rest', 1000);
        await ctx.step('undo', () => 3);
        return [error instanceof CancelledError, error.name, error.code, error.reason, error.step];
      } finally {
        await ctx.step('finally', () => 4);
      }`);
    const id = await it.begin('flow');
    await it.until(id, 'waiting');
    expect(await it.cancel(id)).toEqual({ cancelled: true, status: 'cancelling' });
    await expect.poll(() => it.states(id)).toContain('rest waiting');
    expect(await it.run(id)).toMatchObject({ status: 'cancelling', ending: 'cancelled' });
    await expect(it.cancel(id)).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
    const run = await it.moveUntil(id, 1000, 'cancelled', 'failed');
    expect(run.error).toBeNull();
    expect(run.output).toEqual([true, 'CancelledError', 'CANCELLED', 'cancelled', 'never']);
    expect(await it.states(id)).toEqual([
      'reserve succeeded',
      'never cancelled',
      'undo succeeded',
      'rest succeeded',
      'undo:2 succeeded',
      'finally succeeded',
    ]);
  });

  test('gets the result of a step that still succeeds, and the CancelledError at the next', async () => {
    const it = await start(`
      const undo = [];
      try {
        undo.push(await ctx.step('charge', () => pause(500).then(() => 'refund')));
        await ctx.step('never', () => 1);
      } catch (error) {
        for (const name of undo) await ctx.step(name, () => {});
        throw error;
      }`);
    const { run, states } = await it.cancelAt('charge running');
    expect(run).toMatchObject({ error: null, output: null });
    expect(states).toEqual(['charge succeeded', 'never cancelled', 'refund succeeded']);
  });

  test('gets the error in each branch, and once in the call that joins them', async () => {
    const it = await start(`
      const told = [];
      const watch = (name, work) => async () => { try { await work(); } catch (error) { told.push(name); throw error; } };
      try {
        await ctx.all([
          watch('done', () => ctx.step('done', () => 1)),
          watch('failed', () => ctx.step('failed', () => { throw new Error('boom'); })),
          watch('sleeps', () => ctx.sleep(60_000)),
          watch('polite', () => ctx.step('polite', ({ signal }) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason))))),
        ]);
      } catch (error) {
        await ctx.all(told.map((name) => ctx.step('undo-' + name, () => {})));
        return [error.name, told.toSorted()];
      }`);
    const { run, states } = await it.cancelAt(
      'polite@1-3 running',
      'cancelled',
      'failed@1-1 failed',
      'sleep@1-2 waiting',
    );
    expect(run.output).toEqual(['CancelledError', ['failed', 'polite', 'sleeps']]);
    expect(states).toEqual(
      expect.arrayContaining([
        'failed@1-1 failed',
        'sleep@1-2 cancelled',
        'polite@1-3 cancelled',
        'undo-sleeps succeeded',
      ]),
    );
  });

  test('gets the error in the trunk too when a branch swallowed it', async () => {
    const it = await start(`
      const [found] = await ctx.all([async () => { try { await ctx.sleep(60_000); } catch { return ctx.step('undo', () => 'kept'); } }]);
      try {
        await ctx.step('on', () => 1);
      } catch (error) {
        return [found, error.name];
      }`);
    const { run, states } = await it.cancelAt('sleep@1-0 waiting');
    expect(run.output).toEqual(['kept', 'CancelledError']);
    expect(states).toEqual(['sleep@1-0 cancelled', 'undo@1-0 succeeded', 'on cancelled']);
  });

  test('runs a nonCancellable section to its end', async () => {
    const it = await start(`
      try {
        await ctx.step('bad', () => { throw new Error('boom'); });
      } catch {
        await ctx.nonCancellable(async () => {
          await ctx.step('undo', () => pause(500));
          await ctx.all([ctx.step('undo-more', () => {}), ctx.sleep(0)]);
        });
        await ctx.step('on', () => 1);
      }`);
    const { run, states } = await it.cancelAt('undo running');
    expect(run.error).toBeNull();
    expect(states).toEqual([
      'bad failed',
      'undo succeeded',
      'undo-more succeeded',
      'sleep succeeded',
      'on cancelled',
    ]);
  });

  test('succeeds when no step is left to throw the error', async () => {
    const it = await start("return ctx.step('last', () => pause(500).then(() => 'done'));");
    expect((await it.cancelAt('last running', 'succeeded')).run.output).toBe('done');
  });

  test('that fails in its clean-up is cancelled, and its error is kept', async () => {
    const it = await start(`
      try {
        await ctx.waitForSignal('never');
      } catch {
        await ctx.step('undo', () => { throw new Error('stuck'); });
      }`);
    const { run } = await it.cancelAt('never waiting');
    expect(run.error).toMatchObject({ code: 'STEP_FAILED', details: { step: 'main.undo' } });
  });

  test('has a limit for its clean-up', async () => {
    const it = await start(
      "try { await ctx.waitForSignal('never'); } finally { await ctx.waitForSignal('also'); }",
      {
        workflows: [{ id: 'flow', handler: 'flows.js#flow', cleanUpTimeoutMs: seconds(10) }],
      },
    );
    const id = await it.begin('flow');
    await it.until(id, 'waiting');
    await it.cancel(id);
    await expect.poll(() => it.states(id)).toContain('also waiting');
    await expect.poll(() => it.services.engine.activeRuns).toBe(0);
    await it.wakeAfter(seconds(10));
    expect((await it.until(id, 'cancelled')).error).toMatchObject({
      code: 'EXECUTION_TIMEOUT',
      details: { reason: 'clean_up_timeout' },
    });
    expect(await it.states(id)).toEqual(['never cancelled', 'also cancelled']);
  });

  test('loses none of that time while the service is away and its clean-up waits', async () => {
    const dataDir = await tempDir();
    const body = `
      await ctx.step('reserve', () => 1);
      try {
        await ctx.waitForSignal('never');
      } catch {
        await ctx.step('undo', () => 2);
        await ctx.sleep('rest', 5000);
        await ctx.step('undo', () => 3);
      }`;
    const first = await startCode(source(body), {}, {}, { dataDir });
    const id = await first.begin('flow');
    await first.until(id, 'waiting');
    await first.services.runs.cancel('default', id);
    await expect.poll(() => first.states(id)).toContain('rest waiting');
    await expect.poll(() => first.services.engine.activeRuns).toBe(0);
    await first.close();
    first.clock.advance(minutes(2));
    const projectDir = join(first.folder, '../..');
    const second = await startWorkflow({ dataDir, projectDir, clock: first.clock });
    const run = await second.until(id, 'cancelled');
    expect(run.error).toBeNull();
    expect((await second.steps(id)).map((step) => `${step.id} ${step.status}`)).toEqual([
      'main.reserve succeeded',
      'main.never cancelled',
      'main.undo succeeded',
      'main.rest succeeded',
      'main.undo:2 succeeded',
    ]);
  });

  test('gets the error after its child has compensated', async () => {
    const it = await startCode(
      `
      export const child = defineWorkflow({ id: 'child', run: async (ctx) => {
        try { await ctx.waitForSignal('never'); } finally { await ctx.waitForSignal('undone'); }
      } });
      export const parent = defineWorkflow({ id: 'parent', run: async (ctx) => {
        try { await ctx.runWorkflow('child'); } catch (error) { await ctx.step('undo', () => {}); return error.name; }
      } });`,
      { permissions: { platform: { workflows: true } } },
    );
    const id = await it.begin('parent');
    await expect.poll(() => it.states(id)).toContain('child waiting');
    const child = (await it.step(id, 'main.child')).waitingFor!.runId!;
    await it.until(child, 'waiting');
    await it.services.runs.cancel('default', id);
    await expect.poll(() => it.states(child)).toContain('undone waiting');
    expect(await it.states(id)).toEqual(['child waiting']);
    await it.services.runs.signal('default', child, 'undone', null);
    expect((await it.until(id, 'cancelled')).output).toBe('CancelledError');
    expect(await it.states(id)).toEqual(['child cancelled', 'undo succeeded']);
  });
});

test('a function that exceeds its time limit gets the reason, and cleans up', async () => {
  const it = await start(
    `
    try {
      await ctx.waitForSignal('never');
    } catch (error) {
      await ctx.step('undo', () => error.reason);
      throw error;
    }`,
    { workflows: [{ id: 'flow', handler: 'flows.js#flow', timeoutMs: minutes(1) }] },
  );
  const id = await it.begin('flow');
  await it.until(id, 'waiting');
  await it.wakeAfter(minutes(1));
  const { error } = await it.until(id, 'timed_out', 'failed');
  expect(error).toMatchObject({ details: { reason: 'timeout' } });
  expect((await it.step(id, 'main.undo')).output).toBe('timed_out');
});
