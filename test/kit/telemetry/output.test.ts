import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BufferedOutput } from '../../../src/kit/telemetry/output.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { tempDir } from '../../support/daemon.ts';

test('a reader that was stuck gets what comes after, and no line is spoilt by the one that was cut off', async () => {
  const fifo = join(await tempDir(), 'pipe');
  execFileSync('mkfifo', [fifo]);
  const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  const clock = manualClock();
  const output = new BufferedOutput(fd, clock);
  // More than a pipe holds, which nobody reads.
  for (let i = 0; i < 100; i++) output.write(`${'x'.repeat(2999)}\n`);
  output.flush();
  output.write('after\n');
  let read = '';
  const buffer = Buffer.alloc(64 * 1024);
  while (!read.endsWith('after\n')) {
    read += buffer.toString('utf8', 0, readSync(fd, buffer));
    clock.advance(50);
  }
  const lines = read.split('\n').slice(0, -1);
  expect(new Set(lines)).toEqual(new Set(['x'.repeat(2999), 'after']));
  expect(lines).toHaveLength(101);
});

test('a reader that does not read stops nobody: lines wait, then are dropped and counted, and those that come are whole', async () => {
  const program = join(import.meta.dirname, 'programs/noisy.ts');
  const child = fork(program, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  // Nobody reads until it has written everything.
  const [tookMs] = (await once(child.stderr!, 'data')) as [Buffer];
  let text = '';
  child.stdout!.on('data', (chunk) => {
    text += chunk;
  });
  await expect.poll(() => /dropped \d+\n/.test(text)).toBe(true);
  child.send('end');
  await once(child, 'close');

  // Waiting for the reader at each block of 64 KB would be minutes; the machine may be busy.
  expect(Number(tookMs)).toBeLessThan(10_000);
  const lines = text.split('\n').slice(0, -1);
  const numbered = lines.filter((line) => /^\d{6} x{1016}$/.test(line));
  const dropped = Number(/^dropped (\d+)$/m.exec(text)![1]);
  expect(numbered.length + dropped).toBe(20_000);
  expect(dropped).toBeGreaterThan(10_000);
  expect(lines.slice(-2)).toEqual([`dropped ${dropped}`, 'the end']);
  expect(lines).toHaveLength(numbered.length + 2);
});
