import { expect, test } from 'vitest';
import { seconds } from '../../../src/kit/time/duration.ts';
import { cel, startWorkflow } from './support/workflow.ts';

test('a matrix that was parked while some of it had not begun goes on with all of it', async () => {
  const it = await startWorkflow();
  const id = await it.start({
    jobs: {
      m: {
        strategy: { matrix: { n: [1, 2, 3] }, maxParallel: 1 },
        steps: [
          { id: 'nap', uses: 'wait', with: { ms: 1000 } },
          { id: 'done', uses: 'set', with: { n: cel('matrix.n') } },
        ],
      },
    },
  });
  for (let n = 0; n < 3; n++) {
    await expect.poll(() => it.services.engine.activeRuns).toBe(0);
    expect((await it.run(id)).status).toBe('waiting');
    it.clock.advance(seconds(1));
    await it.services.engine.tick();
  }
  await it.until(id, 'succeeded');
  const done = (await it.steps(id)).filter((step) => step.id.endsWith('.done'));
  expect(done.map(({ output }) => output)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
});
