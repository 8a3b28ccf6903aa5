import { describe, expect, test } from 'vitest';
import { listRunLogs } from '../../../src/contracts/index.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const keyed = (strategy: string, limit = 1) => ({
  concurrency: { key: `deploy-${cel('input.env')}`, limit, strategy },
  steps: [{ uses: 'signal', with: { name: 'go' } }],
});
const prod = { input: { env: 'prod' } };

test('runs of one key wait for each other, other keys do not', async () => {
  const it = await startWorkflow();
  const [a, b, c] = [
    await it.start(keyed('queue'), prod),
    await it.start(keyed('queue'), prod),
    await it.start(keyed('queue'), prod),
  ];
  const other = await it.start(keyed('queue'), { input: { env: 'test' } });
  await it.until(a, 'waiting');
  await it.until(other, 'waiting');
  expect(await it.run(b)).toMatchObject({
    status: 'queued',
    queuedReason: expect.stringContaining('"deploy-prod"'),
  });
  await it.services.runs.signal('default', a, 'go', null);
  await it.until(a, 'succeeded');
  await it.until(b, 'waiting');
  expect((await it.run(c)).status).toBe('queued');
  await it.services.runs.cancel('default', b);
  await it.until(c, 'waiting');
});

test('may refuse, replace queued runs, or cancel the running one', async () => {
  const it = await startWorkflow();
  const first = await it.start(keyed('reject'), prod);
  await expect(it.start(keyed('reject'), prod)).rejects.toMatchObject({
    code: 'CONCURRENT_LIMIT_EXCEEDED',
  });
  const queued = await it.start(keyed('replace-queued'), prod);
  const newer = await it.start(keyed('replace-queued'), prod);
  await it.until(queued, 'cancelled');
  expect((await it.run(newer)).status).toBe('queued');
  const winner = await it.start(keyed('cancel-running'), prod);
  await it.until(first, 'cancelled');
  await it.until(newer, 'cancelled');
  await it.until(winner, 'waiting');
});

describe('a scheduled run whose key is held at its time', () => {
  const IN_A_MINUTE = 60_000;

  /** One run that waits with the key, and what `plan` makes of it a minute later. */
  async function setUp(): Promise<
    TestWorkflow & { holder: string; plan(strategy: string): Promise<string> }
  > {
    const it = await startWorkflow();
    const holder = await it.start(keyed('queue'), prod);
    await it.until(holder, 'waiting');
    const runAt = it.clock.now() + IN_A_MINUTE;
    return { ...it, holder, plan: (strategy) => it.start(keyed(strategy), { ...prod, runAt }) };
  }
  const timeComes = async ({ clock, services }: TestWorkflow): Promise<void> => {
    clock.advance(IN_A_MINUTE);
    await services.engine.tick();
  };

  test('fails with `reject` and its reason', async () => {
    const it = await setUp();
    const planned = await it.plan('reject');
    expect((await it.run(planned)).status).toBe('queued');
    await timeComes(it);
    const run = await it.run(planned);
    expect(run).toMatchObject({
      status: 'failed',
      queuedReason: null,
      startedAt: null,
      finishedAt: it.clock.now(),
      error: { code: 'CONCURRENT_LIMIT_EXCEEDED', details: { workflowId: 'test', limit: 1 } },
      jobs: [{ id: 'main', status: 'cancelled' }],
    });
    expect(await it.eventTypes(planned)).toEqual(['run.queued', 'run.failed']);
    const { items } = await it.call(listRunLogs, {
      params: { runId: planned as never },
      query: { limit: 10 } as never,
    });
    expect(items.map(({ message }) => message)).toEqual([run.error!.message]);
    expect(await it.services.runs.cancel('default', planned)).toEqual({ cancelled: false, status: 'failed' });
    // It is over: the next of the key is whoever waits for it, and it can be run again.
    const next = await it.start(keyed('queue'), prod);
    await it.services.runs.cancel('default', it.holder);
    await it.until(next, 'waiting');
  });

  test('replaces the running one with `cancel-running`', async () => {
    const it = await setUp();
    const queued = await it.start(keyed('queue'), prod);
    const planned = await it.plan('cancel-running');
    await timeComes(it);
    for (const id of [it.holder, queued]) await it.until(id, 'cancelled');
    await it.until(planned, 'waiting');
  });

  test('replaces queued ones with `replace-queued`', async () => {
    const it = await setUp();
    const queued = await it.start(keyed('queue'), prod);
    const planned = await it.plan('replace-queued');
    await timeComes(it);
    await it.until(queued, 'cancelled');
    expect(await it.run(planned)).toMatchObject({
      status: 'queued',
      queuedReason: expect.stringContaining('"deploy-prod"'),
    });
    expect((await it.run(it.holder)).status).toBe('waiting');
    await it.services.runs.cancel('default', it.holder);
    await it.until(planned, 'waiting');
  });

  test('waits with `queue`', async () => {
    const it = await setUp();
    const planned = await it.plan('queue');
    await timeComes(it);
    expect(await it.run(planned)).toMatchObject({
      status: 'queued',
      queuedReason: expect.stringContaining('"deploy-prod"'),
    });
    await it.services.runs.cancel('default', it.holder);
    await it.until(planned, 'waiting');
  });

  test('gets the key when it is free at that time', async () => {
    const it = await setUp();
    const [first, second] = [await it.plan('queue'), await it.plan('reject')];
    await it.services.runs.cancel('default', it.holder);
    await timeComes(it);
    // Of two planned for the same time one is first: that is the one that the other finds there.
    await it.until(first, 'waiting');
    await it.until(second, 'failed');
  });
});
