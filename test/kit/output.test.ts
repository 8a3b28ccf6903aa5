import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { manualClock } from '../../src/kit/clock.ts';
import { bufferedOutput } from '../../src/kit/output.ts';
import { tempDir } from '../support/daemon.ts';

test('a reader that was stuck gets what comes after, and no line is spoilt by the one that was cut off', async () => {
  const fifo = join(await tempDir(), 'pipe');
  execFileSync('mkfifo', [fifo]);
  const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  const output = bufferedOutput(fd, manualClock());
  // More than a pipe holds, which nobody reads.
  for (let i = 0; i < 100; i++) output.write(`${'x'.repeat(2999)}\n`);
  output.flush();
  const buffer = Buffer.alloc(1024 * 1024);
  readSync(fd, buffer);

  output.write('after\n');
  output.flush();
  const read = buffer.toString('utf8', 0, readSync(fd, buffer));
  expect(read.split('\n')).toContain('after');
});
