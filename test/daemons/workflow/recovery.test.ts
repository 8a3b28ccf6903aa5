import { mkdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { decideStep, getJob, postCancelRun, rerunRun, submitJob } from '../../../src/contracts/index.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { sqliteWorkflowStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { callLedger, setUpLedger } from './support/kept-ledger.ts';
import { LEDGER_CONFIG } from './support/ledger.ts';
import { type DaemonProcess, startProcess } from './support/process.ts';
import { cel } from './support/workflow.ts';

async function statusOf(daemon: DaemonProcess, id: string): Promise<string> {
  return (await daemon.run(id)).status;
}

describe('after kill -9', { timeout: 90_000 }, () => {
  test('finished steps are not repeated, and a keyed one in flight is', async () => {
    const { ledger, start } = await setUpLedger();
    ledger.answer('two', (_, response, nth) => {
      if (nth > 1) response.end();
    });
    const first = await start();
    const id = await first.start({
      steps: [
        callLedger(ledger, 'one'),
        callLedger(ledger, 'two', { idempotencyKey: cel('run.id') }),
        callLedger(ledger, 'three'),
      ],
    });
    await expect.poll(() => ledger.count(`two/${id}`)).toBe(1);
    await first.kill();
    const second = await start();
    await expect.poll(() => statusOf(second, id)).toBe('succeeded');
    expect(['one', 'two', 'three'].map((name) => ledger.count(`${name}/${id}`))).toEqual([1, 2, 1]);
    expect(
      new Set(ledger.entries.filter(({ name }) => name.startsWith('two')).map(({ key }) => key)).size,
    ).toBe(1);
    const run = await second.run(id);
    expect(run.resumeCount).toBe(1);
    const [, two] = await second.steps(id);
    expect(two!.history.map(({ status }) => status)).toEqual(['interrupted', 'succeeded']);
  });

  test.each([
    ['retry', 'succeeded', 2],
    ['succeed', 'succeeded', 1],
    ['fail', 'failed', 1],
  ] as const)('a step with a possible effect waits for a decision: %s', async (action, outcome, calls) => {
    const { ledger, start } = await setUpLedger();
    ledger.answer('pay', (_, response, nth) => {
      if (nth > 1) response.end();
    });
    const first = await start();
    const id = await first.start({ steps: [callLedger(ledger, 'pay'), { id: 'end', uses: 'set' }] });
    await expect.poll(() => ledger.count(`pay/${id}`)).toBe(1);
    await first.kill();
    const second = await start();
    await expect.poll(() => statusOf(second, id)).toBe('waiting');
    expect((await second.steps(id))[0]).toMatchObject({ status: 'waiting', waitingFor: { for: 'decision' } });
    expect(ledger.count(`pay/${id}`)).toBe(1);
    const decide = () =>
      second.call(decideStep, {
        params: { runId: id as never, stepId: 'main.pay' },
        body: { action, output: { by: 'hand' } },
      });
    await decide();
    await expect.poll(() => statusOf(second, id)).toBe(outcome);
    expect(ledger.count(`pay/${id}`)).toBe(calls);
    await expect(decide()).rejects.toMatchObject({ code: expect.stringMatching(/CONFLICT|NOT_FOUND/) });
  });

  test('a background job waits for a decision too, unless it carries a key', async () => {
    const folder = await tempDir();
    const plugin = join(folder, 'plugins/slow');
    await mkdir(plugin, { recursive: true });
    await writeFile(join(plugin, 'package.json'), '{"name": "slow", "version": "1.0.0", "type": "module"}');
    await writeFile(
      join(plugin, 'svc.plugin.json'),
      JSON.stringify({
        schema: 'svc.plugin/3',
        id: 'slow',
        version: '1.0.0',
        jobs: [{ id: 'work', handler: 'work.js#work' }],
      }),
    );
    // The first attempt of each never ends.
    await writeFile(
      join(plugin, 'work.js'),
      "export const work = (ctx) => ctx.hostContext.attempt > 1 ? ctx.hostContext.idempotencyKey ?? 'none' : new Promise(() => {});\n",
    );
    const first = await startProcess(folder, {});
    const submit = async (more: object) =>
      (await first.call(submitJob, { body: { handler: 'slow/work', ...more } as never })).job.id;
    const [plain, keyed] = [await submit({}), await submit({ idempotencyKey: 'k' })];
    const job = (daemon: DaemonProcess, id: string) =>
      daemon.call(getJob, { params: { jobId: id as never } });
    for (const id of [plain, keyed]) await expect.poll(async () => (await job(first, id)).attempts).toBe(1);
    await first.kill();
    const second = await startProcess(folder, {});
    await expect.poll(async () => (await job(second, keyed)).status).toBe('succeeded');
    expect((await job(second, keyed)).result).toBe(keyed);
    await expect.poll(async () => (await job(second, plain)).status).toBe('waiting');
    expect((await job(second, plain)).waitingFor).toMatchObject({ for: 'decision' });
    const params = { runId: plain as never, stepId: 'job.run' };
    await second.call(decideStep, { params, body: { action: 'retry' } as never });
    await expect.poll(async () => (await job(second, plain)).result).toBe('none');
    expect((await job(second, plain)).waitingFor).toBeNull();
  });

  test('a cancelled run stays cancelled, and starts no step', async () => {
    const { ledger, start } = await setUpLedger();
    ledger.answer('slow', () => {});
    const first = await start();
    const id = await first.start({ steps: [callLedger(ledger, 'slow'), callLedger(ledger, 'after')] });
    await expect.poll(() => ledger.count(`slow/${id}`)).toBe(1);
    await first.call(postCancelRun, { params: { runId: id as never } });
    await first.kill();
    const second = await start();
    await expect.poll(() => statusOf(second, id)).toBe('cancelled');
    expect(ledger.count(`after/${id}`)).toBe(0);
  });

  test('children whose parent was cancelled just before are cancelled too', async () => {
    const dataDir = await tempDir();
    const folder = join(dataDir, 'workflows');
    await mkdir(folder);
    await writeFile(
      join(folder, 'child.yaml'),
      'id: child\njobs: {a: {steps: [{uses: signal, with: {name: go}}]}}',
    );
    const first = await startProcess(dataDir, LEDGER_CONFIG);
    const parent = await first.start({ steps: [{ id: 'c', uses: 'workflow', with: { id: 'child' } }] });
    await expect.poll(() => statusOf(first, parent)).toBe('waiting');
    await first.kill();
    // What a daemon has written that is killed between the end of a parent and that of its children.
    const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
    const { seq } = (await store.runs.find(null, parent))!;
    await store.runs.cancelIdle(seq, Date.now());
    const [child] = await store.runs.openChildren(parent);
    expect((await store.runs.find(null, child!))?.status).toBe('waiting');
    await store.close();
    const second = await startProcess(dataDir, LEDGER_CONFIG);
    await expect.poll(() => statusOf(second, child!)).toBe('cancelled');
  });

  test('a run whose definition cannot be compiled any more is there to be seen, with that as its error', async () => {
    const dataDir = await tempDir();
    const first = await startProcess(dataDir, {});
    const id = await first.start({ steps: [{ uses: 'signal', with: { name: 'go' } }] });
    await expect.poll(() => statusOf(first, id)).toBe('waiting');
    await first.kill();
    const file = new Sqlite(join(dataDir, 'workflow.db'));
    file.exec(`update definition set body = replace(body, '"uses":"signal"', '"uses":"gone"')`);
    file.exec('update run set wake_at = 1');
    file.close();
    const second = await startProcess(dataDir, {});
    await expect.poll(() => statusOf(second, id)).toBe('failed');
    expect(await second.run(id)).toMatchObject({ error: { code: 'VALIDATION_ERROR' }, jobs: [] });
    expect(await second.steps(id)).toEqual([]);
    await expect(second.run('run_none')).rejects.toMatchObject({ code: 'WORKFLOW_RUN_NOT_FOUND' });
    await expect(
      second.call(rerunRun, { params: { runId: id as never }, body: {} as never }),
    ).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  });

  test('a clean-up whose definition cannot be compiled any more ends as it was to, with that as its error', async () => {
    const dataDir = await tempDir();
    const first = await startProcess(dataDir, {});
    const signal = (name: string) => ({ uses: 'signal', if: 'always()', with: { name } });
    const id = await first.start({ steps: [{ ...signal('go'), if: 'success()' }, signal('undone')] });
    await expect.poll(() => statusOf(first, id)).toBe('waiting');
    await first.call(postCancelRun, { params: { runId: id as never } });
    await expect.poll(async () => (await first.steps(id))[1]?.status).toBe('waiting');
    await first.kill();
    const file = new Sqlite(join(dataDir, 'workflow.db'));
    file.exec(`update definition set body = replace(body, '"uses":"signal"', '"uses":"gone"')`);
    file.close();
    const second = await startProcess(dataDir, {});
    await expect.poll(() => statusOf(second, id)).toBe('cancelled');
    expect(await second.run(id)).toMatchObject({ ending: null, error: { code: 'VALIDATION_ERROR' } });
  });

  test('a run that was to give way to another of its key does', async () => {
    const dataDir = await tempDir();
    const keyed = (strategy: string) => ({
      concurrency: { key: 'one', strategy },
      steps: [{ uses: 'signal', with: { name: 'go' } }],
    });
    const first = await startProcess(dataDir, {});
    const [holder, queued] = [await first.start(keyed('queue')), await first.start(keyed('queue'))];
    await expect.poll(() => statusOf(first, holder)).toBe('waiting');
    await first.kill();
    // What a daemon has written that is killed between a start and the end of those that it takes the place of.
    const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
    const { seq: _, ...known } = (await store.runs.find(null, holder))!;
    const run = { ...known, id: 'run_newer', createdAt: Date.now() };
    const started = await store.runs.start(run, {
      definition: (await store.definition(known.definitionHash))!,
      day: '2030-01-01',
      strategy: 'cancel-running',
    });
    expect(started).toMatchObject({ outcome: 'started', supersedes: [queued, holder] });
    await store.close();
    const second = await startProcess(dataDir, {});
    for (const id of [holder, queued]) await expect.poll(() => statusOf(second, id)).toBe('cancelled');
    await expect.poll(() => statusOf(second, 'run_newer')).toBe('waiting');
  });

  test.each([
    ['SIGABRT', 'failed', 3],
    ['SIGKILL', 'succeeded', 4],
  ] as const)('a run in flight at three ends of the service by %s is %s', async (signal, outcome, calls) => {
    const { ledger, start } = await setUpLedger();
    ledger.answer('kills', (_, response, nth) => {
      if (nth > 3) response.end();
    });
    let daemon = await start();
    const id = await daemon.start({ steps: [callLedger(ledger, 'kills', { idempotent: true })] });
    for (let round = 1; round <= 3; round++) {
      await expect.poll(() => ledger.count(`kills/${id}`)).toBe(round);
      await daemon.kill(signal);
      daemon = await start(daemon);
    }
    await expect.poll(() => statusOf(daemon, id)).toBe(outcome);
    const { error } = await daemon.run(id);
    expect(error?.details.reason).toBe(outcome === 'failed' ? 'poison' : undefined);
    expect(ledger.count(`kills/${id}`)).toBe(calls);
  });

  test('resumed runs go before new ones', async () => {
    const { ledger, start } = await setUpLedger({
      workflow: { ...LEDGER_CONFIG.workflow, maxRunningRuns: 1 },
    });
    let hold = true;
    ledger.answer('old', (_, response) => {
      if (!hold) response.end();
    });
    const first = await start();
    const old = await first.start({ steps: [callLedger(ledger, 'old', { idempotent: true })] });
    await expect.poll(() => ledger.count(`old/${old}`)).toBe(1);
    const fresh = await first.start({ steps: [callLedger(ledger, 'new')] }, { priority: 100 });
    await first.kill();
    hold = false;
    const second = await start();
    await expect.poll(() => statusOf(second, fresh)).toBe('succeeded');
    const names = ledger.entries.map(({ name }) => name.split('/')[0]);
    expect(names).toEqual(['old', 'old', 'new']);
  });
});

test('a limit of two is kept through a kill: the two that were at work are again, and give their places on', async () => {
  const { ledger, start } = await setUpLedger();
  const open = new Map<string, ServerResponse>();
  let most = 0;
  ledger.answer('limited', (request, response) => {
    open.set(request.url!, response);
    most = Math.max(most, open.size);
    response.on('close', () => {
      if (open.get(request.url!) === response) open.delete(request.url!);
    });
  });
  const limited = {
    concurrency: { key: 'two', limit: 2 },
    steps: [callLedger(ledger, 'limited', { idempotencyKey: cel('run.id') })],
  };
  let daemon = await start();
  const ids = await Promise.all(Array.from({ length: 3 }, () => daemon.start(limited)));
  const finish = (key: string): void => {
    open.get(key)!.end('{}');
    open.delete(key);
  };
  const atWork = () => expect.poll(() => open.size, { timeout: 20_000 }).toBe(2);
  await atWork();
  await daemon.kill();
  daemon = await start();
  await atWork();
  finish([...open.keys()][0]!);
  await atWork();
  ledger.answer('limited', (_, response) => response.end('{}'));
  for (const key of open.keys()) finish(key);
  for (const id of ids) await expect.poll(() => statusOf(daemon, id), { timeout: 20_000 }).toBe('succeeded');
  expect(most).toBe(2);
}, 120_000);

test('SIGTERM lets steps in flight finish and starts no others; the rest resumes later', async () => {
  const { ledger, start } = await setUpLedger();
  ledger.answer('a', (_, response) => setTimeout(() => response.end(), 300));
  const first = await start();
  const id = await first.start({ steps: [callLedger(ledger, 'a'), callLedger(ledger, 'b')] });
  await expect.poll(() => ledger.count(`a/${id}`)).toBe(1);
  await first.kill('SIGTERM');
  expect(ledger.count(`b/${id}`)).toBe(0);
  const second = await start();
  await expect.poll(() => statusOf(second, id)).toBe('succeeded');
  expect((await second.run(id)).resumeCount).toBe(0);
  expect([ledger.count(`a/${id}`), ledger.count(`b/${id}`)]).toEqual([1, 1]);
});
