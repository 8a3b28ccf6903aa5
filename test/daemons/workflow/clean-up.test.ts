import { mkdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decideSteps, listRuns, postCancelRun } from '../../../src/contracts/index.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startProcess } from './support/process.ts';
import { cel, startWorkflow } from './support/workflow.ts';

async function setUp() {
  const ledger = await startLedger();
  const it = await startWorkflow({ config: LEDGER_CONFIG });
  const call = (name: string, more: object = {}) => ({
    id: name,
    uses: 'http',
    with: { url: `${ledger.url}/${name}` },
    ...more,
  });
  /** The requests of that name stay open; the returned function answers the latest. */
  function hold(name: string): () => void {
    let open: ServerResponse | undefined;
    ledger.answer(name, (_, response) => {
      open = response;
    });
    return () => void open?.end('{}');
  }
  const statuses = async (id: string) =>
    (await it.steps(id)).map(({ id: step, status }) => `${step} ${status}`);
  const jobs = async (id: string) => (await it.run(id)).jobs.map((job) => `${job.id} ${job.status}`);
  const cancel = (id: string) => it.services.runs.cancel('default', id);
  async function wakeAfter(ms: number): Promise<void> {
    it.clock.advance(ms);
    await it.services.engine.tick();
  }
  return { ledger, it, call, hold, statuses, jobs, cancel, wakeAfter };
}

describe('a cancelled run', () => {
  test('runs the steps and jobs whose `if` holds then, and is `cancelling` until they have ended', async () => {
    const { ledger, it, call, hold, statuses, jobs, cancel } = await setUp();
    hold('work');
    const release = hold('undo');
    const id = await it.start({
      jobs: {
        main: {
          steps: [
            call('work'),
            call('after'),
            call('undo', { if: 'cancelled()' }),
            call('onFailure', { if: 'failure()' }),
            { id: 'report', uses: 'set', if: 'always()', with: { work: cel('steps.work.status') } },
          ],
        },
        next: { needs: 'main', steps: [call('next')] },
        tidy: { needs: 'main', if: 'always()', steps: [call('tidy'), call('tidy2')] },
        notify: { needs: 'next', if: 'cancelled()', steps: [call('notify')] },
      },
    });
    await expect.poll(() => ledger.count('work')).toBe(1);
    expect(await cancel(id)).toEqual({ cancelled: true, status: 'cancelling' });
    await expect.poll(() => ledger.count('undo')).toBe(1);
    expect(await it.run(id)).toMatchObject({ status: 'cancelling', ending: 'cancelled' });
    await expect(cancel(id)).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
    release();
    expect(await it.until(id, 'cancelled')).toMatchObject({ error: null, ending: null });
    expect(await statuses(id)).toEqual([
      'main.work cancelled',
      'main.after cancelled',
      'main.undo succeeded',
      'main.onFailure cancelled',
      'main.report succeeded',
      'next.next pending',
      'tidy.tidy succeeded',
      'tidy.tidy2 succeeded',
      'notify.notify succeeded',
    ]);
    expect(await jobs(id)).toEqual([
      'main cancelled',
      'next cancelled',
      'tidy succeeded',
      'notify succeeded',
    ]);
    expect((await it.step(id, 'main.report')).output).toEqual({ work: 'cancelled' });
    expect(['after', 'onFailure', 'next'].map(ledger.count)).toEqual([0, 0, 0]);
    await expect(cancel(id)).rejects.toMatchObject({ code: 'WORKFLOW_ALREADY_CANCELLED' });
  });

  test('cleans up when it waited, and may wait in its clean-up', async () => {
    const { ledger, it, call, statuses, cancel, wakeAfter } = await setUp();
    const id = await it.start({
      steps: [
        { id: 'go', uses: 'signal', with: { name: 'go' } },
        { id: 'pause', uses: 'wait', if: 'always()', with: { ms: 5000 } },
        call('undo', { if: 'always()' }),
      ],
    });
    await it.until(id, 'waiting');
    expect(await cancel(id)).toEqual({ cancelled: true, status: 'cancelling' });
    await expect.poll(() => statuses(id)).toContain('main.pause waiting');
    await expect.poll(() => it.services.engine.activeRuns).toBe(0);
    expect((await it.run(id)).status).toBe('cancelling');
    await wakeAfter(5000);
    await it.until(id, 'cancelled');
    expect(ledger.count('undo')).toBe(1);
    expect(await statuses(id)).toEqual(['main.go cancelled', 'main.pause succeeded', 'main.undo succeeded']);
  });

  test('lets a step with always() finish', async () => {
    const { ledger, it, call, hold, statuses, cancel } = await setUp();
    const release = hold('always');
    const id = await it.start({ steps: [call('always', { if: 'always()' }), call('after')] });
    await expect.poll(() => ledger.count('always')).toBe(1);
    await cancel(id);
    expect((await it.run(id)).status).toBe('cancelling');
    release();
    await it.until(id, 'cancelled');
    expect(await statuses(id)).toEqual(['main.always succeeded', 'main.after cancelled']);
  });

  test('ends when its clean-up time limit expires, and says so', async () => {
    const { ledger, it, call, hold, jobs, cancel, wakeAfter } = await setUp();
    hold('undo');
    hold('work');
    const steps = [call('work'), call('undo', { if: 'always()' })];
    const [long, short] = [
      await it.start({ steps }),
      await it.start({ steps, cleanUpTimeoutMs: seconds(5) }),
    ];
    await expect.poll(() => ledger.count('work')).toBe(2);
    await cancel(long);
    await cancel(short);
    await expect.poll(() => ledger.count('undo')).toBe(2);
    await wakeAfter(seconds(5));
    expect((await it.until(short, 'cancelled')).error).toMatchObject({
      code: 'EXECUTION_TIMEOUT',
      details: { reason: 'clean_up_timeout', timeoutMs: 5000 },
    });
    expect(await jobs(short)).toEqual(['main cancelled']);
    expect((await it.run(long)).status).toBe('cancelling');
    await wakeAfter(minutes(1) - seconds(5));
    expect((await it.until(long, 'cancelled')).error).toMatchObject({ code: 'EXECUTION_TIMEOUT' });
  });

  test('reports failures of its clean-up', async () => {
    const { ledger, it, call, cancel } = await setUp();
    ledger.answer('undo', (_, response) => response.writeHead(400).end());
    const wait = { id: 'go', uses: 'signal', with: { name: 'go' } };
    const id = await it.start({
      steps: [wait, call('undo', { if: 'always()' }), call('then', { if: 'always()' })],
    });
    await it.until(id, 'waiting');
    await cancel(id);
    expect((await it.until(id, 'cancelled')).error).toMatchObject({ details: { step: 'main.undo' } });
    expect(ledger.count('then')).toBe(1);
  });

  test('waits for the clean-up of its child before its own', async () => {
    const ledger = await startLedger();
    const projectDir = await tempDir();
    await mkdir(join(projectDir, 'workflows'));
    const undo = { id: 'undo', uses: 'http', if: 'always()', with: { url: `${ledger.url}/child` } };
    const child = { id: 'child', jobs: { a: { steps: [{ uses: 'signal', with: { name: 'go' } }, undo] } } };
    await writeFile(join(projectDir, 'workflows/child.yaml'), JSON.stringify(child));
    const it = await startWorkflow({ projectDir, config: LEDGER_CONFIG });
    let answer = () => {};
    ledger.answer('child', (_, response) => {
      answer = () => void response.end('{}');
    });
    const id = await it.start({
      steps: [
        { id: 'c', uses: 'workflow', with: { id: 'child' } },
        { ...undo, with: { url: `${ledger.url}/parent` } },
      ],
    });
    await it.until(id, 'waiting');
    const childId = (await it.step(id, 'main.c')).waitingFor!.runId!;
    await it.until(childId, 'waiting');
    await it.services.runs.cancel('default', id);
    await expect.poll(() => ledger.count('child')).toBe(1);
    expect((await it.run(childId)).status).toBe('cancelling');
    expect((await it.run(id)).status).toBe('cancelling');
    expect(ledger.count('parent')).toBe(0);
    answer();
    await it.until(id, 'cancelled');
    expect((await it.run(childId)).status).toBe('cancelled');
    expect(ledger.count('parent')).toBe(1);
  });
});

describe('a run that exceeds its time limit', () => {
  test('cleans up and is timed out; a cancel meanwhile changes nothing', async () => {
    const { ledger, it, call, hold, statuses, cancel, wakeAfter } = await setUp();
    hold('work');
    const release = hold('undo');
    const id = await it.start({
      timeoutMs: 1000,
      steps: [call('work'), call('undo', { if: 'cancelled()' }), call('after')],
    });
    await expect.poll(() => ledger.count('work')).toBe(1);
    await wakeAfter(1000);
    await expect.poll(() => ledger.count('undo')).toBe(1);
    expect(await it.run(id)).toMatchObject({ status: 'cancelling', ending: 'timed_out' });
    expect(await cancel(id)).toEqual({ cancelled: false, status: 'cancelling' });
    release();
    const { error } = await it.until(id, 'timed_out');
    expect(error).toMatchObject({ code: 'STEP_FAILED', details: { reason: 'timeout' } });
    expect(await statuses(id)).toEqual([
      'main.work timed_out',
      'main.undo succeeded',
      'main.after cancelled',
    ]);
  });
});

test('a job that exceeds its time limit, or whose sibling failed, cleans up within the same limit', async () => {
  const { ledger, it, call, hold, statuses, wakeAfter } = await setUp();
  hold('slow');
  hold('stuck');
  ledger.answer('bad', (_, response) => response.writeHead(400).end());
  const undo = call('undo', { if: 'cancelled()' });
  const timed = await it.start({ jobs: { a: { timeoutMs: 1000, steps: [call('slow'), undo] } } });
  const matrix = await it.start({
    jobs: {
      m: {
        strategy: { matrix: { n: ['slow', 'bad'] } },
        steps: [{ id: 'call', uses: 'http', with: { url: `${ledger.url}/${cel('matrix.n')}` } }, undo],
      },
    },
  });
  await it.until(matrix, 'failed');
  expect(await statuses(matrix)).toEqual([
    'm:0.call cancelled',
    'm:0.undo succeeded',
    'm:1.call failed',
    'm:1.undo skipped',
  ]);
  await wakeAfter(1000);
  await it.until(timed, 'failed');
  expect(await statuses(timed)).toEqual(['a.slow timed_out', 'a.undo succeeded']);
  const late = await it.start({
    jobs: { a: { timeoutMs: 1000, steps: [call('slow'), call('stuck', { if: 'always()' })] } },
  });
  await expect.poll(() => ledger.count('slow')).toBe(3);
  await wakeAfter(1000);
  await expect.poll(() => ledger.count('stuck')).toBe(1);
  await wakeAfter(minutes(1));
  await it.until(late, 'failed');
});

const POLL = { timeout: 20_000, interval: 20 };

test('after kill -9 a clean-up continues where it was', async () => {
  const ledger = await startLedger();
  const dataDir = await tempDir();
  const start = () => startProcess(dataDir, LEDGER_CONFIG);
  const call = (name: string, more: object = {}) => ({
    id: name,
    uses: 'http',
    with: { method: 'POST', url: `${ledger.url}/${name}` },
    ...more,
  });
  // The first call of each is never answered: it is in the air when the service dies.
  for (const name of ['undo', 'plain'])
    ledger.answer(name, (_, response, nth) => {
      if (nth > 1) response.end('{}');
    });
  let daemon = await start();
  const id = await daemon.start({
    steps: [
      { id: 'go', uses: 'signal', with: { name: 'go' } },
      call('first', { if: 'always()' }),
      call('undo', { if: 'cancelled()', idempotencyKey: 'undo-1' }),
      call('plain', { if: 'always()' }),
      call('last', { if: 'always()' }),
    ],
  });
  const status = async () => (await daemon.run(id)).status;
  await expect.poll(status, POLL).toBe('waiting');
  await daemon.call(postCancelRun, { params: { runId: id as never } });
  await expect.poll(() => ledger.count('undo'), POLL).toBe(1);
  await daemon.kill();
  daemon = await start();
  await expect.poll(() => ledger.count('plain'), POLL).toBe(1);
  expect(await status()).toBe('cancelling');
  await daemon.kill();
  daemon = await start();
  // It may have had its effect: an operator decides, and the clean-up goes on then.
  await expect.poll(async () => (await daemon.steps(id))[3]?.waitingFor?.for, POLL).toBe('decision');
  expect(await status()).toBe('cancelling');
  await expect
    .poll(async () => (await daemon.call(listRuns, { query: { waitingReason: 'decision' } as never })).items)
    .toMatchObject([{ id, status: 'cancelling', waitingReason: 'decision' }]);
  const all = await daemon.call(decideSteps, { body: { action: 'retry' } as never });
  expect(all).toMatchObject({ decided: [{ runId: id, stepId: 'main.plain' }], refused: [] });
  await expect.poll(status, POLL).toBe('cancelled');
  expect(['first', 'undo', 'plain', 'last'].map(ledger.count)).toEqual([1, 2, 2, 1]);
  const run = await daemon.run(id);
  expect(run).toMatchObject({ error: null, resumeCount: 2 });
}, 90_000);
