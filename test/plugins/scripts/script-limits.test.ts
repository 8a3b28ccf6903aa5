import { existsSync } from 'node:fs';
import { join } from 'node:path';
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

test('programs keep their caches on the disk, which count as files of the run and go with it', async () => {
  const { run, workspaces, dataDir } = await scriptRunner({ bytes: 100 * MEGABYTE, files: 100 });
  // More than /tmp can hold, and more than the memory of the script.
  const text = 'head -c 90M /dev/zero > ~/cache; echo "home=$HOME" >> "$SVC_OUTPUT"';
  expect(await run({ runId: 'run_1', text, memoryMb: 64 })).toEqual({ home: '/svc/home' });
  expect(existsSync(join(dataDir, 'workspaces/run_1/home/cache'))).toBe(true);
  await expect(
    run({ runId: 'run_1', text: 'ls -l ~/cache; head -c 20M /dev/zero > more; sleep 31536008' }),
  ).rejects.toThrow('wrote more than 100 MB of files');
  await workspaces.close('run_1');
  expect(existsSync(join(dataDir, 'workspaces/run_1'))).toBe(false);
});

test('/tmp, /dev/shm and single files have limits of their own', async () => {
  const { run } = await scriptRunner();
  const text = [
    'try() { if "$@"; then fits="$fits $3"; fi; }',
    'fill() { head -c "$2" /dev/zero > "$1"; }',
    'for size in 63M 65M; do try fill /tmp/x $size; done',
    'for size in 15M 17M; do try fill /dev/shm/x $size; done',
    'for size in 1073741824 1073741825; do try truncate -s $size file; done',
    'echo "fits=$fits" >> "$SVC_OUTPUT"',
  ].join('\n');
  expect(await run({ runId: 'run_1', text })).toEqual({ fits: ' 63M 15M 1073741824' });
});
