import { expect, test } from 'vitest';
import { scriptRunner } from './support/script-runner.ts';

const MEGABYTE = 1024 * 1024;

test('too large files end all scripts of their run, and no script of another one', async () => {
  const { run } = await scriptRunner({ bytes: 2 * MEGABYTE, files: 100 });
  const wait = 'until [ -e done ]; do sleep 0.05; done';
  const other = run({ runId: 'run_2', text: `${wait}; echo n=1 >> "$SVC_OUTPUT"` });
  const texts = [wait, 'head -c 3M /dev/zero > large; sleep 31536007'];
  const ended = await Promise.allSettled(texts.map((text) => run({ runId: 'run_1', text })));
  for (const one of ended)
    expect(one).toMatchObject({
      reason: {
        code: 'STEP_FAILED',
        message: expect.stringContaining('wrote more than 2 MB of files'),
        details: { reason: 'limit' },
      },
    });
  await run({ runId: 'run_2', text: 'touch done' });
  expect(await other).toEqual({ n: '1' });
});
