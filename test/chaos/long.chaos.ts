import { test } from 'vitest';
import { runChaos } from './chaos.ts';
import { seedOf } from './random.ts';

const RUNS = Number(process.env.SVC_TEST_CHAOS_RUNS ?? 1000);
const KILLS = Number(process.env.SVC_TEST_CHAOS_KILLS ?? 100);

test(`${RUNS} runs and ${KILLS} kills: none is lost, stuck, doubled or wrongly given up`, async () => {
  await runChaos({
    seed: seedOf(process.env),
    runs: RUNS,
    kills: KILLS,
    longestLifeMs: 3500,
  });
}, 3_600_000);
