import { execFile } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { decideSteps, listRuns } from '../../../src/contracts/index.ts';
import { entryFile } from '../../../src/kit/files/paths.ts';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startWorkflow } from './support/workflow.ts';

const FORCED_MS = 8000;

/** Runs whose step was in flight when the service stopped, and one that sleeps. */
async function setUp() {
  const ledger = await startLedger();
  ledger.answer('pay', (_, response, nth) => {
    if (nth > 4) response.end('{}');
  });
  const dataDir = await tempDir();
  const config = { workflow: { ...LEDGER_CONFIG.workflow, drainMs: 100 } };
  const first = await startWorkflow({ dataDir, config });
  const pay = { id: 'pay', uses: 'http', with: { method: 'POST', url: `${ledger.url}/pay` } };
  const begin = (id: string) => first.start({ id, steps: [pay] });
  const paying = [await begin('billing'), await begin('billing'), await begin('other'), await begin('other')];
  const sleeper = await first.start({ steps: [{ uses: 'wait', with: { ms: 1e9 } }] });
  await expect.poll(() => ledger.open).toBe(4);
  const startedAt = performance.now();
  await first.close();
  const stopMs = performance.now() - startedAt;
  const it = await startWorkflow({ dataDir, config });
  for (const id of paying) await it.until(id, 'waiting');
  return { it, ledger, paying, sleeper, stopMs };
}

test('a service stops after its drainMs, whatever is in flight', async () => {
  expect((await setUp()).stopMs).toBeLessThan(FORCED_MS);
}, 30_000);

test('many runs that wait for a decision are listed apart from sleepers, and decided at once', async () => {
  const { it, paying, sleeper } = await setUp();
  const [a, b, c, d] = paying as [string, string, string, string];
  const list = async (query: object) =>
    (await it.call(listRuns, { query: { limit: 50, ...query } as never })).items.map(({ id }) => id);
  expect(await list({ waitingReason: 'decision' })).toEqual([d, c, b, a]);
  expect(await list({ waitingReason: 'time' })).toEqual([sleeper]);
  const decide = (body: object) => it.call(decideSteps, { body: { action: 'retry', ...body } as never });
  const billing = await decide({ workflowId: 'billing', stepId: 'main.pay' });
  expect(billing).toEqual({
    decided: [b, a].map((runId) => ({ runId, stepId: 'main.pay' })),
    refused: [],
    nextCursor: null,
  });
  for (const id of [a, b]) await it.until(id, 'succeeded');
  expect(await decide({ stepId: 'main.other' })).toMatchObject({ decided: [], refused: [] });
  const page = await decide({ action: 'fail', limit: 1 });
  expect(page).toMatchObject({ decided: [{ runId: d }], nextCursor: expect.any(String) });
  expect(await decide({ action: 'fail', cursor: page.nextCursor })).toMatchObject({
    decided: [{ runId: c }],
  });
  for (const id of [c, d]) await it.until(id, 'failed');
}, 30_000);

test('the command line lists them first, and decides for all runs of a workflow', async () => {
  const { it, paying, sleeper } = await setUp();
  const svc = (...args: string[]): Promise<string> =>
    new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [entryFile('cli'), 'workflows', ...args, '--url', it.url, '--token', 'any'],
        { env: { PATH: process.env.PATH } },
        (_, stdout, stderr) => resolve(stdout + stderr),
      );
      onTestFinished(() => void child.kill());
    });
  const [first, second] = (await svc('runs')).split('\n\n');
  for (const id of paying) {
    expect(first).toContain(id);
    expect(second).not.toContain(id);
  }
  expect(first).not.toContain(sleeper);
  expect(second).toMatch(new RegExp(`${sleeper}.*waiting \\(time\\)`));
  expect(await svc('runs', '--waiting-for', 'time')).not.toContain('decision');
  expect(await svc('decide', 'all', 'all', 'retry', '--workflow', 'other')).toContain('2 steps of 2 runs');
  for (const id of paying.slice(2)) await it.until(id, 'succeeded');
  expect(await svc('decide', paying.slice(0, 2).join(','), 'main.pay', 'fail')).toContain(
    '2 steps of 2 runs',
  );
  expect(await svc('decide', 'all', 'all', 'retry', '--workflow', 'other')).toContain('No matching run');
}, 60_000);
