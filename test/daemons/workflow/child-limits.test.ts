import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listRuns, sendSignal } from '../../../src/contracts/index.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** A child that waits for a signal, and has something to clean up. */
const child = (url: string) => ({
  id: 'child',
  outputs: { was: 'signalled' },
  jobs: {
    main: {
      steps: [
        { id: 'go', uses: 'signal', with: { name: 'go' } },
        { id: 'undo', uses: 'http', if: 'cancelled()', idempotent: true, with: { method: 'POST', url } },
      ],
    },
  },
});

async function start() {
  const ledger = await startLedger();
  const projectDir = await tempDir();
  await mkdir(join(projectDir, 'workflows'));
  await writeFile(join(projectDir, 'workflows/child.yaml'), JSON.stringify(child(`${ledger.url}/undo`)));
  const it = await startWorkflow({ projectDir, config: LEDGER_CONFIG });
  return { it, ledger, projectDir };
}

const step = (more: object = {}) => ({
  id: 'c',
  uses: 'workflow',
  with: { id: 'child' },
  timeoutMs: minutes(1),
  ...more,
});

async function childrenOf(it: TestWorkflow) {
  const { items } = await it.call(listRuns, { query: { workflowId: 'child', limit: 10 } });
  return items.toReversed();
}

async function pass(it: TestWorkflow, ms: number): Promise<void> {
  it.clock.advance(ms);
  await it.services.engine.tick();
}

test('the time limit of a step that runs a workflow applies to its child, which is cancelled and cleans up', async () => {
  const { it, ledger } = await start();
  const answers: Array<() => void> = [];
  ledger.answer('undo', (_, response) => answers.push(() => response.end()));
  const id = await it.start({ steps: [step()] });
  await it.until(id, 'waiting');
  expect(it.services.engine.activeRuns).toBe(0);
  const { wakeAt, waitingFor } = await it.step(id, 'main.c');
  expect([wakeAt! - it.clock.now(), waitingFor!.timedOut]).toEqual([minutes(1), undefined]);
  await pass(it, minutes(1) - 1);
  expect((await childrenOf(it))[0]!.status).toBe('waiting');

  await pass(it, 1);
  await expect.poll(() => answers.length).toBe(1);
  expect((await childrenOf(it))[0]!.status).toBe('cancelling');
  await expect.poll(async () => (await it.step(id, 'main.c')).waitingFor?.timedOut).toBe(true);
  expect((await it.step(id, 'main.c')).wakeAt).toBeNull();
  answers[0]!();
  const run = await it.until(id, 'failed');
  const [one] = await childrenOf(it);
  expect(one!.status).toBe('cancelled');
  expect(await it.step(id, 'main.c')).toMatchObject({
    status: 'timed_out',
    error: {
      code: 'EXECUTION_TIMEOUT',
      message: expect.stringContaining('did not end within 60000 ms'),
      details: { timeoutMs: minutes(1), runId: one!.id, status: 'cancelled' },
    },
    history: [{ status: 'timed_out', errorClass: 'timeout' }],
  });
  expect(run.error).toMatchObject({ code: 'STEP_FAILED' });
});

test('continues over a restart, and expires if its end passed meanwhile', async () => {
  const { it: first, ledger, projectDir } = await start();
  const ids = [await first.start({ steps: [step()] }), await first.start({ steps: [step()] })];
  for (const id of ids) await first.until(id, 'waiting');
  const { dataDir, clock } = first;
  await first.close();
  clock.advance(seconds(30));
  const second = await startWorkflow({ projectDir, dataDir, clock, config: LEDGER_CONFIG });
  await second.services.engine.tick();
  expect((await second.step(ids[0]!, 'main.c')).status).toBe('waiting');
  const [, other] = await childrenOf(second);
  await second.call(sendSignal, { params: { runId: other!.id, name: 'go' }, body: {} });
  await second.until(ids[1]!, 'succeeded');
  await second.close();
  clock.advance(seconds(31));
  const third = await startWorkflow({ projectDir, dataDir, clock, config: LEDGER_CONFIG });
  await third.until(ids[0]!, 'failed');
  expect((await third.step(ids[0]!, 'main.c')).status).toBe('timed_out');
  expect(ledger.count('undo')).toBe(1);
});

test('each attempt has its own time limit and child; a result of the child in time counts', async () => {
  const { it, ledger } = await start();
  const retry = { maxAttempts: 2, initialMs: 1000, jitter: 'none', on: ['timeout'] };
  const id = await it.start({ steps: [step({ retry })] });
  await it.until(id, 'waiting');
  await pass(it, minutes(1));
  await expect.poll(async () => (await it.step(id, 'main.c')).waitingFor?.for).toBe('retry');
  expect(ledger.count('undo')).toBe(1);
  await pass(it, seconds(1));
  await expect
    .poll(async () => (await childrenOf(it)).map(({ status }) => status))
    .toEqual(['cancelled', 'waiting']);
  await it.until(id, 'waiting');
  const { wakeAt, attempts } = await it.step(id, 'main.c');
  expect([attempts, wakeAt! - it.clock.now()]).toEqual([2, minutes(1)]);
  const [, last] = await childrenOf(it);
  await it.call(sendSignal, { params: { runId: last!.id, name: 'go' }, body: {} });
  await it.until(id, 'succeeded');
  expect((await it.step(id, 'main.c')).output).toEqual({ was: 'signalled' });
});

test('a step without a limit waits for its child indefinitely', async () => {
  const { it } = await start();
  const id = await it.start({ steps: [step({ timeoutMs: undefined })] });
  await it.until(id, 'waiting');
  expect((await it.step(id, 'main.c')).wakeAt).toBeNull();
});
