import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { decideStep, sendSignal, startRun } from '../../../src/contracts/index.ts';
import { setUpNoting } from './support/noting-code.ts';
import type { DaemonProcess } from './support/process.ts';

const begin = async (daemon: DaemonProcess, workflowId: string, input: unknown = {}) =>
  (await daemon.call(startRun, { body: { workflowId, input } as never })).run.id;
const statusOf = async (daemon: DaemonProcess, id: string) => (await daemon.run(id)).status;
const POLL = { timeout: 20_000, interval: 20 };

describe('after kill -9, a workflow in code', () => {
  test('does not repeat finished steps; a step in flight is repeated under its key, unless it runs at most once', async () => {
    const { ledger, start } = await setUpNoting(
      () => `
      export const flow = defineWorkflow({
        id: 'flow',
        run: async (ctx) => {
          const one = await ctx.step('one', async () => { await note(ctx, 'one'); return Math.random(); });
          await ctx.step('keyed', ({ idempotencyKey }) => note(ctx, 'keyed', idempotencyKey), { idempotencyKey: 'order-7' });
          await ctx.step('free', ({ idempotencyKey }) => note(ctx, 'free', idempotencyKey));
          await ctx.step('plain', () => note(ctx, 'plain'), { once: true, idempotencyKey: 'plain-7' });
          await ctx.step('last', async () => { await note(ctx, 'last'); });
          return one;
        },
      });`,
    );
    // The first call of each is never answered: its step is in the air when the service dies.
    for (const name of ['keyed', 'free', 'plain'])
      ledger.answer(name, (_, response, nth) => {
        if (nth > 1) response.end('{}');
      });
    let daemon = await start();
    const id = await begin(daemon, 'flow');
    await expect.poll(() => ledger.count('keyed'), POLL).toBe(1);
    const [one] = await daemon.steps(id);
    await daemon.kill();
    daemon = await start();
    await expect.poll(() => ledger.count('free'), POLL).toBe(1);
    await daemon.kill();
    daemon = await start();
    await expect.poll(() => ledger.count('plain'), POLL).toBe(1);
    await daemon.kill();
    daemon = await start();
    await expect.poll(() => statusOf(daemon, id), POLL).toBe('waiting');
    const plain = (await daemon.steps(id)).find(({ name }) => name === 'plain');
    expect(plain).toMatchObject({ status: 'waiting', waitingFor: { for: 'decision' } });
    const params = { runId: id as never, stepId: 'main.plain' };
    await daemon.call(decideStep, { params, body: { action: 'retry' } as never });
    await expect.poll(() => statusOf(daemon, id), POLL).toBe('succeeded');
    const counts = ['one', 'keyed', 'free', 'plain', 'last'].map((name) => ledger.count(name));
    expect(counts).toEqual([1, 2, 2, 2, 1]);
    const free = ledger.entries.filter(({ name }) => name === 'free').map(({ key }) => key);
    expect(free).toEqual([`${id}/main.free`, `${id}/main.free`]);
    expect(new Set(ledger.entries.filter(({ name }) => name === 'keyed').map(({ key }) => key))).toEqual(
      new Set(['order-7']),
    );
    expect((await daemon.run(id)).output).toBe(one!.output);
  }, 60_000);

  test('that slept or waited meanwhile goes on', async () => {
    const { ledger, start } = await setUpNoting(
      () => `
      export const flow = defineWorkflow({
        id: 'flow',
        run: async (ctx) => {
          await ctx.step('one', () => note(ctx, 'one'), { idempotent: true });
          await ctx.sleep(300);
          const { payload } = await ctx.waitForSignal('go');
          await ctx.step('two', () => note(ctx, 'two'), { idempotent: true });
          return payload;
        },
      });`,
    );
    let daemon = await start();
    const id = await begin(daemon, 'flow');
    await expect.poll(() => statusOf(daemon, id), POLL).toBe('waiting');
    await daemon.kill();
    daemon = await start();
    const steps = async () => (await daemon.steps(id)).map(({ name, status }) => `${name} ${status}`);
    await expect.poll(steps, POLL).toContain('go waiting');
    await daemon.call(sendSignal, { params: { runId: id as never, name: 'go' }, body: { payload: 'yes' } });
    await expect.poll(() => statusOf(daemon, id), POLL).toBe('succeeded');
    expect((await daemon.run(id)).output).toBe('yes');
    expect([ledger.count('one'), ledger.count('two')]).toEqual([1, 1]);
  }, 60_000);
});

test('a run whose service is killed between the writes after a sleep resumes', async () => {
  const { dataDir, start } = await setUpNoting(
    () => `
    export const flow = defineWorkflow({
      id: 'flow',
      run: async (ctx) => {
        await ctx.sleep(1000);
        return 'woken';
      },
    });`,
  );
  const changeSchema = (sql: string): void => {
    const db = new Sqlite(join(dataDir, 'workflow.db'));
    db.exec(sql);
    db.close();
  };
  let daemon = await start();
  const id = await begin(daemon, 'flow');
  await expect.poll(() => statusOf(daemon, id), POLL).toBe('waiting');
  await daemon.kill();
  changeSchema(`create trigger hold before update on job when new.status = 'running'
    begin select raise(abort, 'held'); end`);
  daemon = await start();
  await expect.poll(() => daemon.log(), POLL).toContain('run.write_failed');
  await daemon.kill();
  changeSchema('drop trigger hold');
  daemon = await start();
  await expect.poll(() => statusOf(daemon, id), POLL).toBe('succeeded');
  expect((await daemon.run(id)).output).toBe('woken');
}, 60_000);

test('SIGTERM lets the step in flight finish and starts no other; the run resumes later', async () => {
  const { ledger, start } = await setUpNoting(
    () => `
    export const flow = defineWorkflow({
      id: 'flow',
      run: async (ctx) => {
        await ctx.step('a', () => note(ctx, 'a'));
        await ctx.step('b', () => note(ctx, 'b'));
      },
    });`,
  );
  ledger.answer('a', (_, response) => setTimeout(() => response.end('{}'), 500));
  let daemon = await start();
  const id = await begin(daemon, 'flow');
  await expect.poll(() => ledger.count('a'), POLL).toBe(1);
  await daemon.kill('SIGTERM');
  expect(ledger.count('b')).toBe(0);
  daemon = await start();
  await expect.poll(() => statusOf(daemon, id), POLL).toBe('succeeded');
  expect((await daemon.run(id)).resumeCount).toBe(0);
  expect([ledger.count('a'), ledger.count('b')]).toEqual([1, 1]);
}, 60_000);
