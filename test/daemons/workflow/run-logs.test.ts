import { expect, test } from 'vitest';
import { listRunLogs, type RunLogLine } from '../../../src/contracts/index.ts';
import { describeOnStores } from '../../support/stores.ts';
import { startCode } from './support/code.ts';

const NOISY = `export const noisy = defineWorkflow({
  id: 'noisy',
  run: async (ctx) => {
    for (let part = 0; part < 3; part++) {
      for (let n = 0; n < 40; n++) ctx.log.info('line ' + part + '.' + n);
      await ctx.step('part' + part, () => part);
    }
  },
});`;

describeOnStores('log lines of a run', (config) => {
  test('are listed newest first with a cursor, the same lines as oldest first', async () => {
    const it = await startCode(NOISY, {}, await config());
    const runId = (await it.begin('noisy')) as never;
    await it.until(runId, 'succeeded');
    const read = async (order: 'asc' | 'desc', limit: number): Promise<RunLogLine[]> => {
      const lines: RunLogLine[] = [];
      let cursor: string | undefined;
      do {
        const query = { order, limit, cursor };
        const page = await it.call(listRunLogs, { params: { runId }, query });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        lines.push(...page.items);
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return lines;
    };
    await expect.poll(async () => (await read('asc', 1000)).length).toBe(120);
    const all = await read('asc', 1000);
    expect(all[0]!.message).toBe('line 0.0');
    for (const limit of [1, 7, 120, 1000]) expect(await read('desc', limit)).toEqual(all.toReversed());
  });

  test('that a stream shows are oldest first, whatever order the query has', async () => {
    const it = await startCode(NOISY, {}, await config());
    const runId = await it.begin('noisy');
    await it.until(runId, 'succeeded');
    const response = await it.fetch(`/api/v1/workflows/runs/${runId}/logs?order=desc`, {
      headers: { accept: 'text/event-stream' },
    });
    expect(await response.text()).toMatch(/line 0\.0[\s\S]*line 2\.39/);
  });
});
