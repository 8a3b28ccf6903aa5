import { expect, test } from 'vitest';
import { getRun } from '../../../src/contracts/index.ts';
import { setUpNoting } from './support/noting-code.ts';
import { PLAY_MS, playRandom, playUnderDeaths, REPEATABLE, SEED } from './support/played-runs.ts';

test(
  `under random kills code workflows end with each finished step run once and each effect under one key (seed ${SEED})`,
  async () => {
    const { ledger, dataDir } = await setUpNoting(
      () => `
      export const flow = defineWorkflow({
        id: 'flow',
        steps: ${REPEATABLE},
        run: async (ctx) => {
          const drawn = await ctx.step('draw', () => Math.random());
          const parts = await ctx.all([0, 1, 2].map((i) => async () => {
            await ctx.step('part', ({ idempotencyKey }) => note(ctx, 'part', idempotencyKey));
            if (i === 1) await ctx.sleep(10);
            return ctx.step('end', () => drawn);
          }));
          return { drawn, parts };
        },
      });`,
    );
    const inputs = Array.from({ length: 40 }, (_, n) => ({ n }));
    const random = playRandom();
    const played = { name: 'code', dataDir, random, workflowId: 'flow', inputs };
    const { client, ids } = await playUnderDeaths(played);
    for (const runId of ids) {
      const run = await client.call(getRun, { params: { runId } });
      expect(run.error).toBeNull();
      const { drawn, parts } = run.output as { drawn: number; parts: number[] };
      // What the first step found is what every later pass was told.
      expect(parts).toEqual([drawn, drawn, drawn]);
      const steps = await client.steps(runId);
      expect(steps).toHaveLength(8);
      for (const { history } of steps)
        expect(history.filter(({ status }) => status === 'succeeded')).toHaveLength(1);
    }
    const keys = new Set(ledger.entries.map(({ key }) => key));
    expect(keys.has(null)).toBe(false);
    for (const id of ids) expect([...keys].filter((key) => key?.startsWith(`${id}/`))).toHaveLength(3);
  },
  PLAY_MS,
);
