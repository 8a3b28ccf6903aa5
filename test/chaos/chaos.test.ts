import { test } from 'vitest';
import { runChaos } from './chaos.ts';
import { seedOf } from './random.ts';

/** The long one, with a thousand runs and a hundred kills: `npm run test:chaos`. */
test('under random kills, signals and cancels no run is lost, stuck, doubled or wrongly given up', async () => {
  await runChaos({
    seed: seedOf(process.env),
    runs: 60,
    kills: 6,
    longestLifeMs: 2500,
  });
}, 420_000);
