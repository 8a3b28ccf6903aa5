import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode } from './support/code.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const signal = (name: string, more: object = {}) => ({ id: name, uses: 'signal', with: { name }, ...more });
const ALWAYS = { if: 'always()' };

/** Waits until nothing of any run is in memory. */
const parked = (it: TestWorkflow) => expect.poll(() => it.services.engine.activeRuns).toBe(0);
const cancel = (it: TestWorkflow, id: string) => it.services.runs.cancel('default', id);
const send = (it: TestWorkflow, id: string, name: string) =>
  it.services.runs.signal('default', id, name, null);
const jobs = async (it: TestWorkflow, id: string) =>
  (await it.run(id)).jobs.map((job) => `${job.id} ${job.status}`);

async function move(it: TestWorkflow, ms: number): Promise<void> {
  it.clock.advance(ms);
  await it.services.engine.tick();
  await parked(it);
}

describe('the limit of the clean-up of a job', () => {
  const definition = {
    jobs: {
      timed: { timeoutMs: 1000, steps: [signal('go'), signal('undo', ALWAYS)] },
      other: { steps: [signal('one'), signal('two'), signal('three')] },
    },
  };

  test('counts from one time on, however often the run is parked and taken up', async () => {
    const it = await startWorkflow();
    const id = await it.start(definition);
    await it.until(id, 'waiting');
    await move(it, 1000);
    expect((await it.step(id, 'timed.undo')).status).toBe('waiting');
    for (const name of ['one', 'two']) {
      await move(it, seconds(25));
      await send(it, id, name);
      await expect.poll(async () => (await it.step(id, `other.${name}`)).status).toBe('succeeded');
      await parked(it);
    }
    await move(it, seconds(10) - 1);
    expect(await jobs(it, id)).toContain('timed waiting');
    await move(it, 1);
    expect(await jobs(it, id)).toContain('timed timed_out');
  });

  test('keeps its remaining time over a restart; time without a service does not count', async () => {
    const dataDir = await tempDir();
    const first = await startWorkflow({ dataDir });
    const id = await first.start(definition);
    await first.until(id, 'waiting');
    await move(first, 1000);
    await move(first, seconds(50));
    await first.close();
    first.clock.advance(minutes(5));
    const second = await startWorkflow({ dataDir, clock: first.clock });
    await move(second, seconds(10) - 1);
    expect(await jobs(second, id)).toContain('timed waiting');
    await move(second, 1);
    expect(await jobs(second, id)).toContain('timed timed_out');
  });
});

test('the clean-up limit of a run keeps its remaining time over a restart', async () => {
  const dataDir = await tempDir();
  const first = await startWorkflow({ dataDir });
  const id = await first.start({ steps: [signal('go'), signal('undo', ALWAYS)] });
  await first.until(id, 'waiting');
  await cancel(first, id);
  await parked(first);
  await move(first, seconds(50));
  await first.close();
  first.clock.advance(minutes(5));
  const second = await startWorkflow({ dataDir, clock: first.clock });
  await move(second, seconds(10) - 1);
  expect((await second.run(id)).status).toBe('cancelling');
  await move(second, 1);
  expect(await second.run(id)).toMatchObject({
    status: 'cancelled',
    error: { details: { reason: 'clean_up_timeout' } },
  });
});

test('a cancelled run stays cancelled when its own time limit expires during clean-up', async () => {
  const it = await startWorkflow();
  const id = await it.start({ timeoutMs: 5000, steps: [signal('go'), signal('undo', ALWAYS)] });
  await it.until(id, 'waiting');
  await cancel(it, id);
  await parked(it);
  await move(it, seconds(10));
  expect(await it.run(id)).toMatchObject({ status: 'cancelling', ending: 'cancelled' });
  await send(it, id, 'undo');
  expect((await it.until(id, 'cancelled', 'timed_out')).status).toBe('cancelled');
});

describe('a cancelled run with children', () => {
  /** A run whose first steps wait for a child; the clean-up of the child waits for `undone`. */
  async function startParent(definition: Record<string, unknown>) {
    const projectDir = await tempDir();
    await mkdir(join(projectDir, 'workflows'));
    const child = { id: 'child', jobs: { main: { steps: [signal('go'), signal('undone', ALWAYS)] } } };
    await writeFile(join(projectDir, 'workflows/child.yaml'), JSON.stringify(child));
    const it = await startWorkflow({ projectDir, config: LEDGER_CONFIG });
    return { it, id: await it.start(definition) };
  }
  const CHILD = { id: 'child', uses: 'workflow', with: { id: 'child' } };
  const childOf = async (it: TestWorkflow, id: string) =>
    (await it.step(id, 'main.child')).waitingFor!.runId!;

  test('has its whole clean-up time once its children have cleaned up', async () => {
    const ledger = await startLedger();
    ledger.answer('own', () => {});
    const own = { id: 'own', uses: 'http', with: { url: `${ledger.url}/own` }, ...ALWAYS };
    const { it, id } = await startParent({ steps: [CHILD, own], cleanUpTimeoutMs: seconds(10) });
    await it.until(id, 'waiting');
    const child = await childOf(it, id);
    await it.until(child, 'waiting');
    await cancel(it, id);
    await expect.poll(async () => (await it.steps(child))[1]?.status).toBe('waiting');
    await parked(it);
    await move(it, seconds(30));
    expect((await it.run(id)).status).toBe('cancelling');
    await send(it, child, 'undone');
    await expect.poll(() => ledger.count('own')).toBe(1);
    it.clock.advance(seconds(10) - 1);
    await it.services.engine.tick();
    expect((await it.run(id)).status).toBe('cancelling');
    it.clock.advance(1);
    expect((await it.until(id, 'cancelled')).error).toMatchObject({
      details: { reason: 'clean_up_timeout', timeoutMs: seconds(10) },
    });
  });

  test('ends after its children, also when it is parked and has no clean-up itself', async () => {
    const { it, id } = await startParent({ steps: [CHILD, signal('never')] });
    await it.until(id, 'waiting');
    const child = await childOf(it, id);
    await it.until(child, 'waiting');
    await parked(it);
    expect(await cancel(it, id)).toEqual({ cancelled: true, status: 'cancelling' });
    await expect.poll(async () => (await it.steps(child))[1]?.status).toBe('waiting');
    await parked(it);
    expect((await it.run(id)).status).toBe('cancelling');
    await expect(cancel(it, id)).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
    await send(it, child, 'undone');
    const { finishedAt, error } = await it.until(id, 'cancelled');
    expect(error).toBeNull();
    expect((await it.run(child)).finishedAt).toBeLessThanOrEqual(finishedAt!);
  });

  test('ends after the children that its clean-up started, when that used up its time', async () => {
    const { it, id } = await startParent({ steps: [signal('never'), { ...CHILD, ...ALWAYS }] });
    await it.until(id, 'waiting');
    await cancel(it, id);
    await expect.poll(async () => (await it.step(id, 'main.child')).status).toBe('waiting');
    const child = await childOf(it, id);
    await it.until(child, 'waiting');
    await parked(it);
    await move(it, minutes(1));
    await expect.poll(async () => (await it.steps(child))[1]?.status).toBe('waiting');
    await parked(it);
    expect(await it.run(id)).toMatchObject({ status: 'cancelling', waitingReason: 'child' });
    await send(it, child, 'undone');
    expect((await it.until(id, 'cancelled')).error).toMatchObject({
      details: { reason: 'clean_up_timeout' },
    });
    expect((await it.run(child)).status).toBe('cancelled');
  });
});

test('a clean-up that waits for a slot loses no time', async () => {
  const ledger = await startLedger();
  let release = () => {};
  ledger.answer('busy', (_, response) => {
    release = () => void response.end('{}');
  });
  ledger.answer('stuck', () => {});
  const config = { workflow: { ...LEDGER_CONFIG.workflow, maxRunningSteps: 1 } };
  const it = await startCode(
    `export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      try { await ctx.waitForSignal('never'); } finally { await ctx.step('undo', () => 1); }
    } });`,
    {},
    config,
  );
  const call = (name: string, more: object) => ({
    ...{ id: name, uses: 'http', with: { url: `${ledger.url}/${name}` }, timeoutMs: hours(1) },
    ...more,
  });
  const undone = await it.begin('flow');
  await it.until(undone, 'waiting');
  const stuck = await it.start({ steps: [signal('go'), call('stuck', ALWAYS)] });
  await it.until(stuck, 'waiting');
  await parked(it);
  const busy = await it.start({ steps: [call('busy', {})] });
  await expect.poll(() => ledger.count('busy')).toBe(1);
  for (const id of [undone, stuck]) await cancel(it, id);
  await expect.poll(() => it.services.engine.activeRuns).toBe(3);
  it.clock.advance(minutes(5));
  await it.services.engine.tick();
  for (const id of [undone, stuck]) expect((await it.run(id)).status).toBe('cancelling');
  release();
  await it.until(busy, 'succeeded');
  expect((await it.until(undone, 'cancelled')).error).toBeNull();
  expect(await it.states(undone)).toEqual(['never cancelled', 'undo succeeded']);
  await expect.poll(() => ledger.count('stuck')).toBe(1);
  it.clock.advance(minutes(1));
  expect((await it.until(stuck, 'cancelled')).error).toMatchObject({ code: 'EXECUTION_TIMEOUT' });
});
