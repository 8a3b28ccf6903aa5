import { expect, test } from 'vitest';
import { countRuns, listRuns, rerunRun, startRun } from '../../../src/contracts/index.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { hours } from '../../../src/kit/time/duration.ts';
import { describeOnStores } from '../../support/stores.ts';
import { asDefinition, cel, startWorkflow } from './support/workflow.ts';

const HOUR = hours(1);
const NOTE = asDefinition({ steps: [{ id: 'note', uses: 'set', with: { done: true } }] });
const FAILING = asDefinition({ steps: [{ id: 'stop', uses: 'set', with: { n: cel('input.missing.n') } }] });

describeOnStores('run search', (config) => {
  async function start(clock = manualClock()) {
    const it = await startWorkflow({ config: await config(), clock });
    const begin = async (more: Record<string, unknown> = {}, tenant?: string) => {
      const { run } = await it.call(startRun, { body: { definition: NOTE, ...more } as never }, tenant);
      if (tenant === undefined) await it.until(run.id, 'succeeded', 'failed');
      return run.id;
    };
    const ids = async (query: object) =>
      (await it.call(listRuns, { query: query as never })).items.map(({ id }) => id);
    return { it, clock, begin, ids };
  }

  test('runs are found by label, time and text of the input, only in their own namespace', async () => {
    const { it, clock, begin, ids } = await start();
    const first = await begin({ labels: { customer: 'acme', env: 'test' }, input: { order: 'A-1' } });
    const middle = clock.now() + 1000;
    // The service keeps its lease.
    clock.advance(2000);
    const second = await begin({ labels: { customer: 'acme' }, input: { order: 'B-2' } });
    await begin({ labels: { customer: 'acme' }, input: { order: 'A-1' } }, 'other');
    expect((await it.run(first)).labels).toEqual({ customer: 'acme', env: 'test' });
    expect(await ids({ label: 'customer:acme' })).toEqual([second, first]);
    expect(await ids({ label: ['customer:acme', 'env:test'] })).toEqual([first]);
    expect(await ids({ from: middle })).toEqual([second]);
    expect(await ids({ to: new Date(middle).toISOString() })).toEqual([first]);
    expect(await ids({ search: 'A-1' })).toEqual([first]);
    expect(await ids({ search: second })).toEqual([second]);
    const { run } = await it.call(rerunRun, { params: { runId: first as never } });
    expect(run.labels).toEqual({ customer: 'acme', env: 'test' });
  });

  test('labels outside their limits and malformed filters are refused with the reason', async () => {
    const { it, begin, ids } = await start();
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'v']));
    const refused: Array<[object, string]> = [
      [many, 'more than 16 labels'],
      [{ 'a b': 'v' }, 'a label key must start with'],
      [{ ['k'.repeat(64)]: 'v' }, '63'],
      [{ k: 'v'.repeat(129) }, '128'],
      [{ k: '' }, 'labels'],
      [{ k: 'a\nb' }, 'control characters'],
    ];
    for (const [labels, reason] of refused)
      await expect(begin({ labels })).rejects.toMatchObject({
        code: 'VALIDATION_ERROR',
        message: expect.stringContaining(reason),
      });
    for (const query of [{ label: 'customer' }, { from: 'yesterday' }, { search: '' }])
      await expect(ids(query)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    const key = { idempotencyKey: 'once', labels: { a: '1' } };
    expect(await begin(key)).toBe(await begin(key));
    await expect(begin({ ...key, labels: { a: '2' } })).rejects.toMatchObject({ code: 'CONFLICT' });
    expect((await it.call(listRuns, {})).items).toHaveLength(1);
  });

  test('runs are counted per hour of their creation, with failures, for one namespace', async () => {
    const clock = manualClock();
    // Shortly before the end of an hour, so that the service keeps its lease over the change.
    clock.advance(HOUR - (clock.now() % HOUR) - 1000);
    const hour = clock.now() - (clock.now() % HOUR);
    const { it, begin } = await start(clock);
    await begin();
    await begin({ definition: FAILING });
    await begin({}, 'other');
    clock.advance(2000);
    await begin();
    const counts = await it.call(countRuns, { query: { from: hour } });
    expect(counts.items).toEqual([
      { hour, total: 2, open: 0, succeeded: 1, failed: 1, cancelled: 0 },
      { hour: hour + HOUR, total: 1, open: 0, succeeded: 1, failed: 0, cancelled: 0 },
    ]);
    expect(counts.totals).toMatchObject({ total: 3, failed: 1 });
    const day = await it.call(countRuns, {});
    expect([day.items.length, day.to - day.from, day.totals.total]).toEqual([24, 24 * HOUR, 3]);
    for (const query of [{ from: hour, to: hour }, { from: hour - 32 * 24 * HOUR }])
      await expect(it.call(countRuns, { query })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  });
});
