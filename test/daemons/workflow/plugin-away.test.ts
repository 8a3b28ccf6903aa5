import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decideStep, getJob, submitJob } from '../../../src/contracts/index.ts';
import { days, minutes } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode } from './support/code.ts';
import { startProcess } from './support/process.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'tool',
  version: '1.0.0',
  commands: [
    { id: 'add', handler: 'code.js#add' },
    { id: 'safe', handler: 'code.js#hang', idempotent: true },
    { id: 'unsafe', handler: 'code.js#hang' },
  ],
  jobs: [{ id: 'sum', handler: 'code.js#add' }],
  workflows: [
    { id: 'child', jobs: { main: { steps: [{ id: 's', uses: 'tool/add', with: { a: 1, b: 2 } }] } } },
  ],
};
const CODE = `
export const add = (ctx, { a = 1, b = 1 }) => ({ sum: a + b });
export const hang = (ctx) => new Promise((resolve) => {
  if (ctx.hostContext.attempt > 1) resolve({ attempt: ctx.hostContext.attempt });
});
`;

const BROKEN_CODE = 'export const add = (ctx, { a, b }) => ({ sum: a + };';

/** Waits a second, then uses the plugin. */
const NAP = { id: 'nap', uses: 'wait', with: { ms: 1000 } };
const ADD = { id: 'add', uses: 'tool/add', with: { a: 1, b: 2 } };

async function writeTool(projectDir: string, code = CODE): Promise<string> {
  const folder = join(projectDir, 'plugins/tool');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'package.json'), '{"name": "tool", "version": "1.0.0", "type": "module"}');
  await writeFile(join(folder, 'code.js'), code);
  return folder;
}

async function setUp(config: Record<string, unknown> = {}, code?: string) {
  const projectDir = await tempDir();
  const folder = await writeTool(projectDir, code);
  const it = await startWorkflow({ projectDir, config });
  const aside = join(projectDir, 'aside');
  const { plugins } = it.services;
  return {
    it,
    folder,
    async take() {
      await rename(folder, aside);
      await plugins.reload();
    },
    async giveBack() {
      await rename(aside, folder);
      await plugins.reload();
    },
  };
}

async function wake(it: TestWorkflow, ms = 1000): Promise<void> {
  it.clock.advance(ms);
  await it.services.engine.tick();
}

const waitingForTool = { status: 'waiting', waitingReason: 'plugin' };
const diagnostics = (it: TestWorkflow, event: string) => it.logs.lines.filter((line) => line.event === event);

test('a run that wakes while its plugin is absent waits, warns, and resumes when the plugins are reloaded', async () => {
  const { it, take, giveBack } = await setUp();
  const id = await it.start({
    outputs: { sum: cel('jobs.main.outputs.sum') },
    jobs: { main: { outputs: { sum: cel('steps.add.output.sum') }, steps: [NAP, ADD] } },
  });
  await it.until(id, 'waiting');
  expect((await it.run(id)).waitingReason).toBe('time');
  await take();
  await wake(it);
  await expect.poll(() => it.run(id)).toMatchObject(waitingForTool);
  expect(await it.step(id, 'main.add')).toMatchObject({
    status: 'waiting',
    waitingFor: { for: 'plugin', name: 'tool', message: expect.stringContaining('no plugin "tool"') },
    wakeAt: null,
    attempts: 0,
    startedAt: null,
    history: [],
  });
  expect(diagnostics(it, 'plugin.away')).toMatchObject([
    { level: 'warn', reasonCode: 'PLUGIN_AWAY', evidence: { pluginId: 'tool' } },
  ]);
  const gauge = 'svc_workflow_runs_waiting_for_plugin{service="workflow",plugin="tool"}';
  expect(await (await it.fetch('/metrics')).text()).toContain(`${gauge} 1`);
  await giveBack();
  const run = await it.until(id, 'succeeded', 'failed');
  expect(run).toMatchObject({ status: 'succeeded', output: { sum: 3 }, waitingReason: null });
  expect(await it.step(id, 'main.add')).toMatchObject({ attempts: 1, history: [{ attempt: 1 }] });
  expect(await (await it.fetch('/metrics')).text()).toContain(`${gauge} 0`);
}, 60_000);

test('a broken edit of running code fails no run: the previous version continues', async () => {
  const { it, folder } = await setUp();
  const id = await it.start({ steps: [NAP, ADD] });
  await it.until(id, 'waiting');
  await writeFile(join(folder, 'code.js'), BROKEN_CODE);
  await it.services.plugins.reload();
  await wake(it);
  expect((await it.until(id, 'succeeded', 'failed')).error).toBeNull();
});

test('code that fails to load suspends its runs until it is repaired', async () => {
  const { it, folder } = await setUp({}, BROKEN_CODE);
  const id = await it.start({ steps: [NAP, ADD] });
  await it.until(id, 'waiting');
  await wake(it);
  await expect.poll(() => it.run(id), { timeout: 20_000 }).toMatchObject(waitingForTool);
  const { attempts, waitingFor, wakeAt } = await it.step(id, 'main.add');
  expect({ attempts, waitingFor }).toMatchObject({
    attempts: 0,
    waitingFor: { for: 'plugin', message: expect.stringContaining('could not be loaded') },
  });
  // Files that nothing watches may be mended too.
  expect(wakeAt).toBeGreaterThan(it.clock.now());
  await writeFile(join(folder, 'code.js'), CODE);
  await it.services.plugins.reload();
  expect((await it.until(id, 'succeeded', 'failed')).error).toBeNull();
}, 60_000);

test('a plugin that stays absent is an error in the log after workflow.pluginAlertMs, and again', async () => {
  const { it, take } = await setUp({ workflow: { pluginAlertMs: minutes(2) } });
  await take();
  const ids = await Promise.all([it.start({ steps: [ADD] }), it.start({ steps: [ADD] })]);
  for (const id of ids) await expect.poll(() => it.run(id)).toMatchObject(waitingForTool);
  it.clock.advance(minutes(2) - 1);
  expect(diagnostics(it, 'plugin.away_long')).toEqual([]);
  it.clock.advance(1);
  expect(diagnostics(it, 'plugin.away_long')).toMatchObject([
    { level: 'error', reasonCode: 'PLUGIN_AWAY_LONG', evidence: { pluginId: 'tool', runs: 2 } },
  ]);
  it.clock.advance(minutes(2));
  expect(diagnostics(it, 'plugin.away_long')).toHaveLength(2);
});

test('a job and the start of a child wait for their plugin too', async () => {
  const { it, take, giveBack } = await setUp();
  const { job } = await it.call(submitJob, {
    body: { handler: 'tool/sum', input: {}, runAt: it.clock.now() + 1000 } as never,
  });
  const parent = await it.start({
    steps: [NAP, { id: 'child', uses: 'workflow', with: { id: 'child' } }],
  });
  await it.until(parent, 'waiting');
  await take();
  await wake(it);
  await expect.poll(() => it.run(parent)).toMatchObject(waitingForTool);
  await expect.poll(() => it.run(job.id)).toMatchObject(waitingForTool);
  await giveBack();
  await it.until(parent, 'succeeded');
  const done = () => it.call(getJob, { params: { jobId: job.id } });
  await expect.poll(async () => (await done()).status).toBe('succeeded');
}, 60_000);

test('a workflow in code waits for its plugin between two passes', async () => {
  const it = await startCode(`
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      await ctx.sleep(1000);
      return ctx.step('last', () => 'done');
    } });`);
  const id = await it.begin('flow');
  await it.until(id, 'waiting');
  const aside = join(it.folder, '../../aside');
  await rename(it.folder, aside);
  await it.services.plugins.reload();
  await it.wakeAfter(1000);
  await expect.poll(() => it.run(id), { timeout: 20_000 }).toMatchObject(waitingForTool);
  await rename(aside, it.folder);
  await it.services.plugins.reload();
  expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ status: 'succeeded', output: 'done' });
}, 60_000);

describe('a clean-up whose plugin is absent', () => {
  const UNDO = {
    steps: [
      { id: 'go', uses: 'signal', with: { name: 'go' } },
      { ...ADD, if: 'always()' },
    ],
  };
  const cleaningUp = { status: 'cancelling', waitingReason: 'plugin' };
  const parked = (it: TestWorkflow) => expect.poll(() => it.services.engine.activeRuns).toBe(0);
  const timesTakenUp = async (it: TestWorkflow, id: string) =>
    (await it.eventTypes(id)).filter((type) => type === 'run.continued').length;

  test('waits for it without polling, which does not count towards its time', async () => {
    const { it, take, giveBack } = await setUp();
    const id = await it.start(UNDO);
    await it.until(id, 'waiting');
    await take();
    await it.services.runs.cancel('default', id);
    await expect.poll(() => it.run(id)).toMatchObject(cleaningUp);
    await parked(it);
    const before = await timesTakenUp(it, id);
    for (let minute = 0; minute < 10; minute++) await wake(it, minutes(1));
    await parked(it);
    expect(await timesTakenUp(it, id)).toBe(before);
    expect(await it.run(id)).toMatchObject(cleaningUp);
    await giveBack();
    expect((await it.until(id, 'cancelled')).error).toBeNull();
    expect(await it.step(id, 'main.add')).toMatchObject({ status: 'succeeded', attempts: 1 });
  }, 60_000);

  test('waits for it in code too', async () => {
    const it = await startCode(`
      export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
        try { await ctx.waitForSignal('never'); } finally { await ctx.step('undo', () => 1); }
      } });`);
    const id = await it.begin('flow');
    await it.until(id, 'waiting');
    await parked(it);
    const aside = join(it.folder, '../../aside');
    await rename(it.folder, aside);
    await it.services.plugins.reload();
    await it.services.runs.cancel('default', id);
    await expect.poll(() => it.run(id), { timeout: 20_000 }).toMatchObject(cleaningUp);
    await parked(it);
    for (let hour = 0; hour < 10; hour++) {
      await wake(it, minutes(60));
      await parked(it);
    }
    expect(await it.run(id)).toMatchObject(cleaningUp);
    await rename(aside, it.folder);
    await it.services.plugins.reload();
    expect((await it.until(id, 'cancelled')).error).toBeNull();
    expect(await it.states(id)).toEqual(['never cancelled', 'undo succeeded']);
  }, 60_000);

  test('is stopped when it has waited for as long as runs are kept', async () => {
    const { it, take } = await setUp({ retention: { runsDays: 2 } });
    const id = await it.start(UNDO);
    await it.until(id, 'waiting');
    await take();
    await it.services.runs.cancel('default', id);
    await expect.poll(() => it.run(id)).toMatchObject(cleaningUp);
    await parked(it);
    await wake(it, days(2) - 1);
    await parked(it);
    expect(await it.run(id)).toMatchObject(cleaningUp);
    await wake(it, 1);
    expect((await it.until(id, 'cancelled')).error).toMatchObject({
      code: 'EXECUTION_TIMEOUT',
      message: expect.stringContaining('for a plugin'),
      details: { reason: 'clean_up_timeout', timeoutMs: days(2) },
    });
  }, 60_000);
});

test('after a crash without the plugin, its manifest decides once it is back', async () => {
  const projectDir = await tempDir();
  const folder = await writeTool(projectDir);
  const start = () => startProcess(projectDir, { execution: { worker: { sandbox: 'permission' } } });
  const first = await start();
  const ids = await Promise.all(
    ['safe', 'unsafe'].map((name) => first.start({ steps: [{ id: 's', uses: `tool/${name}` }] })),
  );
  const stepOf = async (it: typeof first, id: string) => (await it.steps(id))[0]!;
  for (const id of ids)
    await expect.poll(async () => (await stepOf(first, id)).startedAt, { timeout: 20_000 }).not.toBeNull();
  await first.kill();
  await rename(folder, join(projectDir, 'aside'));
  const second = await start();
  for (const id of ids) {
    await expect.poll(() => second.run(id), { timeout: 20_000 }).toMatchObject(waitingForTool);
    expect(await stepOf(second, id)).toMatchObject({ attempts: 1, waitingFor: { interrupted: true } });
  }
  await second.kill();
  await rename(join(projectDir, 'aside'), folder);
  const third = await start();
  const [safe, unsafe] = ids as [string, string];
  await expect.poll(async () => (await third.run(safe)).status, { timeout: 20_000 }).toBe('succeeded');
  expect(await stepOf(third, safe)).toMatchObject({ attempts: 2, output: { attempt: 2 } });
  await expect
    .poll(() => third.run(unsafe), { timeout: 20_000 })
    .toMatchObject({ status: 'waiting', waitingReason: 'decision' });
  await third.call(decideStep, {
    params: { runId: unsafe as never, stepId: 'main.s' },
    body: { action: 'retry' } as never,
  });
  await expect.poll(async () => (await third.run(unsafe)).status, { timeout: 20_000 }).toBe('succeeded');
}, 90_000);
