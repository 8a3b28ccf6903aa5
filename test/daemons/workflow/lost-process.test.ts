import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  decideStep,
  getJob,
  getRun,
  listRunLogs,
  postCancelRun,
  submitJob,
} from '../../../src/contracts/index.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode, writeCodePlugin } from './support/code.ts';
import { startLedger } from './support/ledger.ts';
import { MortalService } from './support/mortal-service.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'shared',
  version: '1.0.0',
  permissions: { quotas: { concurrency: 8 } },
  commands: [
    { id: 'safe', handler: 'code.js#hold', idempotent: true },
    { id: 'unsafe', handler: 'code.js#hold' },
    { id: 'exit', handler: 'code.js#exit', idempotent: true },
  ],
  jobs: [{ id: 'unsafe', handler: 'code.js#hold' }],
};
const CODE = `
export const hold = ({ hostContext: { attempt, idempotencyKey } }) =>
  attempt > 1 ? { attempt, idempotencyKey } : new Promise(() => {});
export const exit = () => process.exit(3);
`;

async function startShared(): Promise<TestWorkflow> {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/shared');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'package.json'), '{"name": "shared", "version": "1.0.0", "type": "module"}');
  await writeFile(join(folder, 'code.js'), CODE);
  return startWorkflow({ projectDir, config: { execution: { worker: { maxProcesses: 1 } } } });
}

/** Waits until the handlers have begun: that is written with what happens next, or soon after. */
async function begun(it: TestWorkflow, ...ids: string[]): Promise<void> {
  const startedAt = async (id: string) => {
    it.clock.advance(50);
    return (await it.steps(id))[0]?.startedAt ?? null;
  };
  for (const id of ids) await expect.poll(() => startedAt(id), { timeout: 20_000 }).not.toBeNull();
}

const step = (name: string, more: object = {}) => ({
  steps: [{ id: 's', uses: `shared/${name}`, timeoutMs: minutes(600), ...more }],
});

test('a lost process interrupts the steps beside the faulty one: they run again, or ask for a decision', async () => {
  const it = await startShared();
  const safe = await it.start(step('safe'));
  const keyed = await it.start(step('unsafe', { idempotencyKey: 'once' }));
  const unsafe = await it.start(step('unsafe', { retry: { maxAttempts: 3 } }));
  const { job } = await it.call(submitJob, { body: { handler: 'shared/unsafe' } as never });
  await begun(it, safe, keyed, unsafe, job.id);
  const guilty = await it.start(step('exit'));
  expect((await it.until(safe, 'succeeded', 'failed')).status).toBe('succeeded');
  expect((await it.until(keyed, 'succeeded', 'failed')).status).toBe('succeeded');
  expect(await it.step(keyed, 'main.s')).toMatchObject({
    output: { attempt: 2, idempotencyKey: 'once' },
    history: [{ status: 'interrupted' }, { status: 'succeeded' }],
  });
  for (const id of [unsafe, job.id])
    await expect
      .poll(() => it.run(id), { timeout: 20_000 })
      .toMatchObject({ status: 'waiting', waitingReason: 'decision' });
  // Alone in its process it is the one at fault.
  expect((await it.until(guilty, 'failed')).error).toMatchObject({ code: 'STEP_FAILED' });
  const decide = { action: 'retry' } as never;
  await it.call(decideStep, { params: { runId: unsafe as never, stepId: 'main.s' }, body: decide });
  await it.call(decideStep, { params: { runId: job.id as never, stepId: 'job.run' }, body: decide });
  await it.until(unsafe, 'succeeded');
  const ended = () => it.call(getJob, { params: { jobId: job.id } });
  await expect.poll(async () => (await ended()).status).toBe('succeeded');
}, 60_000);

test('a step that is cancelled and does not stop costs the steps beside it no attempt that may not be repeated', async () => {
  const it = await startShared();
  const beside = await it.start(step('safe'));
  const cancelled = await it.start(step('unsafe'));
  await begun(it, beside, cancelled);
  await it.call(postCancelRun, { params: { runId: cancelled as never } });
  await it.until(cancelled, 'cancelled');
  expect((await it.until(beside, 'succeeded', 'failed')).status).toBe('succeeded');
  expect((await it.step(beside, 'main.s')).history.map(({ status }) => status)).toEqual([
    'interrupted',
    'succeeded',
  ]);
}, 60_000);

test('a step of code that overruns its time interrupts the steps beside it', async () => {
  const it = await startCode(`
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => ctx.all([
      () => ctx.step('stubborn', () => new Promise(() => {}), { timeoutMs: 1000 }).catch(({ status }) => status),
      () => ctx.step('beside', ({ attempt }) => attempt > 1 ? attempt : new Promise(() => {}), { idempotent: true }),
    ]) });`);
  const id = await it.begin('flow');
  await expect
    .poll(() => it.states(id), { timeout: 20_000 })
    .toEqual(['stubborn@1-0 running', 'beside@1-1 running']);
  const run = await it.moveUntil(id, 500, 'succeeded', 'failed');
  expect(run).toMatchObject({ status: 'succeeded', output: ['timed_out', 2] });
}, 60_000);

/** Starts a run whose function calls the ledger, which answers only call `answered` and later ones. */
async function startCalling({ answered }: { answered: number }) {
  const ledger = await startLedger();
  ledger.answer('pass', (_, response, nth) => {
    if (nth >= answered) response.end('{}');
  });
  const dataDir = await tempDir();
  const source = `
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      await ctx.fetch('${ledger.url}/pass');
      return ctx.step('last', () => 'done');
    } });`;
  await writeCodePlugin(dataDir, source, { permissions: { network: [new URL(ledger.url).host] } });
  const service = await MortalService.start({ dataDir, config: {}, random: () => 0 });
  const id = await service.client.start('flow', { idempotencyKey: 'one' });
  const calls = async (count: number) =>
    expect.poll(() => ledger.count('pass'), { timeout: 20_000 }).toBe(count);
  return { service, id, calls };
}

test('a function whose process is killed between its steps is run again', async () => {
  const { service, id, calls } = await startCalling({ answered: 2 });
  await calls(1);
  await service.die('runners');
  await service.client.allEnded();
  const [run] = await service.client.runs();
  expect(run).toMatchObject({ id, status: 'succeeded', output: 'done', error: null });
}, 60_000);

test('a function whose process was killed is run again although the service ends before the retry', async () => {
  const { service, id, calls } = await startCalling({ answered: 3 });
  for (const count of [1, 2]) {
    await calls(count);
    await service.die('runners');
  }
  const failures = async () => {
    const page = { params: { runId: id as never }, query: { limit: 10 } };
    return (await service.client.call(listRunLogs, page)).items.length;
  };
  // The retry after the second failure waits for two seconds.
  await expect.poll(failures, { timeout: 20_000 }).toBe(2);
  await service.die('restart');
  const ended = () => service.client.call(getRun, { params: { runId: id as never } });
  await expect
    .poll(ended, { timeout: 20_000 })
    .toMatchObject({ status: 'succeeded', output: 'done', error: null });
}, 60_000);
