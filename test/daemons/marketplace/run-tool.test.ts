import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runTool } from '../../../src/daemons/marketplace/sources/run-tool.ts';
import { tempDir } from '../../support/daemon.ts';
import { isAlive } from '../../support/is-alive.ts';

/** Has a program of our own be `git`; it writes the process ids of which it says that they are there. */
async function asGit(script: string) {
  const cwd = await tempDir();
  await writeFile(join(cwd, 'git'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const { PATH } = process.env;
  process.env.PATH = `${cwd}:${PATH}`;
  onTestFinished(() => {
    process.env.PATH = PATH;
  });
  const stopping = new AbortController();
  const run = runTool('git', [], { cwd, signal: stopping.signal, graceMs: 100 });
  run.catch(() => {});
  const read = async () =>
    (await readFile(join(cwd, 'pids'), 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number);
  await expect.poll(read, { interval: 20 }).toHaveLength(2);
  const pids = await read();
  onTestFinished(() => {
    for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
  });
  return { run, pids, stop: () => stopping.abort(new Error('stopped')) };
}

const SLEEPER = "(trap '' TERM; exec sleep 600)";

test.each([
  ['the program and what it called', `trap '' TERM\n${SLEEPER} &\nprintf "$!\\n$$\\n" > pids\nwait; wait`],
  ['what it called alone', `${SLEEPER} &\nprintf "$!\\n$$\\n" > pids\nwait`],
  ['what it called, with no word to us', `${SLEEPER} >/dev/null 2>&1 &\nprintf "$!\\n$$\\n" > pids\nwait`],
])('a process that ignores SIGTERM is killed: %s', async (_who, script) => {
  const { run, pids, stop } = await asGit(script);
  expect(pids.map(isAlive)).toEqual([true, true]);
  stop();
  await expect(run).rejects.toThrow('stopped');
  await expect.poll(() => pids.map(isAlive), { interval: 20 }).toEqual([false, false]);
});

test('a process that left the group blocks no caller', async () => {
  const left = "setsid sh -c 'echo $$ >> pids; exec sleep 600'";
  const { run, stop } = await asGit(`${left} &\necho $$ >> pids\nwait`);
  stop();
  await expect(run).rejects.toThrow('stopped');
});
