import { spawn } from 'node:child_process';
import { expect, onTestFinished, test, vi } from 'vitest';
import { describeExit } from '../../src/plugins/backends/worker/exit-reason.ts';
import { createMemoryWatch } from '../../src/plugins/backends/worker/memory.ts';

/** Thread that ends after it is listed. */
const ENDED_THREAD = '0';
/** Makes each look at the threads of a process take this long. */
const look = vi.hoisted(() => ({ ms: 0 }));

vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>();
  return {
    ...fs,
    readdirSync(path: string) {
      for (const until = performance.now() + look.ms; performance.now() < until; );
      return [...fs.readdirSync(path), ENDED_THREAD];
    },
  };
});

test('a process with too many child processes is ended, even while one of its threads ends', async () => {
  const script = 'for (let n = 0; n < 70; n++) require("child_process").spawn("sleep", ["30"])';
  const parent = spawn(process.execPath, ['-e', script], { detached: true, stdio: 'ignore' });
  onTestFinished(() => void process.kill(-parent.pid!, 'SIGKILL'));
  const over = Promise.withResolvers<{ max: number } | { usedMb: number }>();
  const watch = createMemoryWatch({
    ...{ limitMb: 100_000, folders: [], hasChildren: true },
    pid: () => parent.pid,
    isBusy: () => true,
    onOver: (usedMb) => over.resolve({ usedMb }),
    onManyChildren: (max) => over.resolve({ max }),
    onFull: () => {},
  });
  onTestFinished(() => watch.stop());
  watch.start();
  expect(await over.promise).toEqual({ max: 64 });
});

test('a process with many threads is looked at less often, so that it does not slow down the service', async () => {
  look.ms = 40;
  onTestFinished(() => {
    look.ms = 0;
  });
  const looks: number[] = [];
  const third = Promise.withResolvers<void>();
  const watch = createMemoryWatch({
    ...{ limitMb: 100_000, folders: [], hasChildren: true },
    pid() {
      looks.push(performance.now());
      if (looks.length === 3) third.resolve();
      return process.pid;
    },
    isBusy: () => true,
    onOver: () => {},
    onManyChildren: () => {},
    onFull: () => {},
  });
  onTestFinished(() => watch.stop());
  watch.start();
  await third.promise;
  expect(looks[2]! - looks[1]!).toBeGreaterThan(40 * 5 - 5);
});

test('a folder of the machine does not count as memory while bwrap still makes the sandbox', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const watch = createMemoryWatch({
    ...{ limitMb: 1000, folders: ['/'], hasChildren: false },
    pid: () => process.ppid,
    isBusy() {
      resolve('within its limit');
      return false;
    },
    onOver: (usedMb) => resolve(`${usedMb} MB`),
    onManyChildren: () => {},
    onFull: () => {},
  });
  onTestFinished(() => watch.stop());
  watch.start();
  expect(await promise).toBe('within its limit');
});

test('the error of too many child processes names their number', () => {
  const exit = {
    code: null,
    signal: 'SIGKILL',
    fatal: null,
    stderr: '',
    memoryMb: 1,
    wasReady: true,
    hadLoaded: true,
  };
  expect(describeExit({ ...exit, ended: { kind: 'children', max: 64 } })).toEqual({
    message: 'had more than 64 child processes and was ended.',
    details: { reason: 'children', maxChildren: 64 },
  });
});
