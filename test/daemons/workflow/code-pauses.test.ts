import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { familyOf } from '../../../bench/support/process-usage.ts';
import { listRunLogs, pauseRun, resumeRun, sendSignal } from '../../../src/contracts/index.ts';
import { startCode } from './support/code.ts';
import { startLedger } from './support/ledger.ts';

const POLL = { timeout: 20_000 };
const OTHER = "export const other = defineWorkflow({ id: 'other', run: async () => 'done' });";
const params = (runId: string) => ({ params: { runId: runId as never } });

/** Kills the processes of a plugin that the service of this test has started. */
function killRunners(pluginId: string): void {
  const isRunner = (pid: number) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`svc-runner ${pluginId}`);
  for (const pid of familyOf(process.pid).filter(isRunner)) process.kill(pid, 'SIGKILL');
}

test('a function whose retry a pause interrupts is run again once the run is resumed', async () => {
  const ledger = await startLedger();
  ledger.answer('pass', (_request, response, nth) => void (nth > 1 && response.end('{}')));
  const it = await startCode(
    `export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      await ctx.fetch('${ledger.url}/pass');
      return 'done';
    } });${OTHER}`,
    { permissions: { network: [new URL(ledger.url).host] } },
  );
  const id = await it.begin('flow');
  const failures = async () =>
    (await it.call(listRunLogs, { ...params(id), query: { limit: 10 } as never })).items.length;
  await expect.poll(() => ledger.count('pass'), POLL).toBe(1);
  killRunners('code');
  await expect.poll(failures, POLL).toBe(1);
  await it.call(pauseRun, params(id));
  await expect.poll(() => it.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
  // The retry after the first failure waits for one second.
  await it.wakeAfter(2000);
  await it.until(await it.begin('other'), 'succeeded');
  expect(ledger.count('pass')).toBe(1);
  await it.call(resumeRun, params(id));
  expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ status: 'succeeded', output: 'done' });
  expect(ledger.count('pass')).toBe(2);
}, 60_000);

test('a function that is paused in a step begins no further step until it is resumed', async () => {
  const ledger = await startLedger();
  const answers: Array<() => void> = [];
  ledger.answer('held', (_request, response) => void answers.push(() => response.end('{}')));
  const it = await startCode(
    `export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      await ctx.step('held', async () => { await ctx.fetch('${ledger.url}/held'); });
      await ctx.step('next', async () => { await ctx.fetch('${ledger.url}/next'); });
      return 'done';
    } });${OTHER}`,
    { permissions: { network: [new URL(ledger.url).host] } },
  );
  const id = await it.begin('flow');
  await expect.poll(() => answers.length, POLL).toBe(1);
  await it.call(pauseRun, params(id));
  answers[0]!();
  await expect.poll(() => it.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
  await it.wakeAfter(1000);
  await it.until(await it.begin('other'), 'succeeded');
  expect(ledger.count('next')).toBe(0);
  await it.call(resumeRun, params(id));
  expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ status: 'succeeded', output: 'done' });
  expect([ledger.count('held'), ledger.count('next')]).toEqual([1, 1]);
}, 60_000);

test('a signal that a function awaits after it was paused is taken once it is resumed', async () => {
  const ledger = await startLedger();
  const answers: Array<() => void> = [];
  ledger.answer('held', (_request, response) => void answers.push(() => response.end('{}')));
  const it = await startCode(
    `export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      await ctx.step('held', async () => { await ctx.fetch('${ledger.url}/held'); });
      return (await ctx.waitForSignal('go')).payload;
    } });${OTHER}`,
    { permissions: { network: [new URL(ledger.url).host] } },
  );
  const id = await it.begin('flow');
  await expect.poll(() => answers.length, POLL).toBe(1);
  await it.call(pauseRun, params(id));
  answers[0]!();
  await expect.poll(() => it.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
  const to = { params: { runId: id as never, name: 'go' } };
  await it.call(sendSignal, { ...to, body: { payload: 'gone' } as never });
  await it.until(await it.begin('other'), 'succeeded');
  expect(await it.states(id)).toEqual(['held succeeded', 'go pending']);
  await it.call(resumeRun, params(id));
  expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ status: 'succeeded', output: 'gone' });
}, 60_000);
