import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { identify, isRunning, killProcess } from '../../src/supervisor/process-identity.ts';

test('a process that had already exited when it was identified never counts as running, even if its pid is reused', () => {
  expect(isRunning(identify(process.pid))).toBe(true);
  expect(isRunning({ pid: process.pid, startedAt: null })).toBe(false);
  expect(isRunning({ pid: process.pid, startedAt: 'another' })).toBe(false);
});

test('only the intended process is killed', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const meant = identify(child.pid!);
  killProcess({ pid: meant.pid, startedAt: 'another' });
  killProcess({ pid: meant.pid, startedAt: null });
  expect(isRunning(meant)).toBe(true);
  killProcess(meant);
  expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
  killProcess(meant);
  expect(isRunning(meant)).toBe(false);
});
