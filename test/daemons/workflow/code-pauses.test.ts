import { expect, test } from 'vitest';
import { getRun, listRunLogs, pauseRun, resumeRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode, writeCodePlugin } from './support/code.ts';
import { startLedger } from './support/ledger.ts';
import { MortalService } from './support/mortal-service.ts';

const POLL = { timeout: 20_000 };
const params = (runId: string) => ({ params: { runId: runId as never } });

test('a function whose retry a pause interrupts is run again once the run is resumed', async () => {
  const ledger = await startLedger();
  ledger.answer('pass', (_request, response, nth) => void (nth >= 4 && response.end('{}')));
  const dataDir = await tempDir();
  const source = `
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => {
      await ctx.fetch('${ledger.url}/pass');
      return 'done';
    } });`;
  await writeCodePlugin(dataDir, source, { permissions: { network: [new URL(ledger.url).host] } });
  const service = await MortalService.start({ dataDir, config: {}, random: () => 0 });
  const { client } = service;
  const id = await client.start('flow', { idempotencyKey: 'one' });
  const failures = async () =>
    (await client.call(listRunLogs, { ...params(id), query: { limit: 10 } })).items.length;
  for (const count of [1, 2, 3]) {
    await expect.poll(() => ledger.count('pass'), POLL).toBe(count);
    await service.die('runners');
    await expect.poll(failures, POLL).toBe(count);
  }
  // The retry after the third failure waits for four seconds.
  await client.call(pauseRun, params(id));
  const run = () => client.call(getRun, params(id));
  await expect.poll(run, POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
  await new Promise((resolve) => setTimeout(resolve, 5000));
  expect(ledger.count('pass')).toBe(3);
  await client.call(resumeRun, params(id));
  await expect.poll(run, POLL).toMatchObject({ status: 'succeeded', output: 'done', error: null });
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
    } });`,
    { permissions: { network: [new URL(ledger.url).host] } },
  );
  const id = await it.begin('flow');
  await expect.poll(() => answers.length, POLL).toBe(1);
  await it.call(pauseRun, params(id));
  answers[0]!();
  await expect.poll(() => it.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
  await it.wakeAfter(1000);
  expect(ledger.count('next')).toBe(0);
  await it.call(resumeRun, params(id));
  expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ status: 'succeeded', output: 'done' });
  expect([ledger.count('held'), ledger.count('next')]).toEqual([1, 1]);
}, 60_000);
