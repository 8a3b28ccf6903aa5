import { existsSync, readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { locate } from '../../../src/kit/process/locate-program.ts';
import { processesOf } from '../../daemons/workflow/support/processes-of.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { scriptRunner } from './support/script-runner.ts';

function kill(pids: number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}

/** Returns the sandboxes of scripts whose parent has ended. */
const orphans = (): number[] =>
  processesOf(`${locate('bwrap', process.env.PATH)} --args 3`).filter((pid) => parentOf(pid) === 1);

function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    // The process has ended.
    return undefined;
  }
}

test('a script that is cancelled while its sandbox starts leaves no process', {
  timeout: 60_000,
}, async () => {
  const { run } = await scriptRunner();
  const mark = 'sleep 31536005';
  atEnd(() => kill(processesOf(mark)));
  const earlier = orphans();
  const left = () => orphans().filter((pid) => !earlier.includes(pid));
  atEnd(() => kill(left()));
  for (let ms = 0; ms <= 20; ms++) {
    const cancel = new AbortController();
    const ended = run({ runId: `run_${ms}`, text: mark, signal: cancel.signal });
    const failed = expect(ended).rejects.toThrow('This operation was aborted');
    await delay(ms);
    cancel.abort();
    await failed;
  }
  await expect.poll(() => processesOf(mark)).toEqual([]);
  await expect.poll(left).toEqual([]);
});

/** Makes a bwrap that reports no pid, and whose child process survives it: the state of bwrap during its start. */
async function useSlowBwrap(): Promise<string> {
  const folder = await tempDir();
  const path = join(folder, 'bwrap');
  const lines = [
    '#!/bin/sh',
    'exec 5<&0',
    `tr '\\0' '\\n' <&3 | grep -vx -e --die-with-parent | tr '\\n' '\\0' > ${folder}/options`,
    `(${locate('bwrap', process.env.PATH)} "$@" <&5 3<${folder}/options 4>/dev/null; echo > ${folder}/ended) &`,
    `echo > ${folder}/launched`,
    'wait',
  ];
  await writeFile(path, lines.join('\n'));
  await chmod(path, 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
  atEnd(() => vi.unstubAllEnvs());
  return folder;
}

test('a script does not start before the service knows its process', async () => {
  const { run, dataDir } = await scriptRunner();
  const mark = 'sleep 31536006';
  atEnd(() => kill(processesOf(mark)));
  const bwrap = await useSlowBwrap();
  const cancel = new AbortController();
  const text = `echo > ran; ${mark}`;
  const failed = expect(run({ runId: 'run_1', text, signal: cancel.signal })).rejects.toThrow('aborted');
  await expect.poll(() => existsSync(join(bwrap, 'launched'))).toBe(true);
  cancel.abort();
  await failed;
  await expect.poll(() => existsSync(join(bwrap, 'ended')), { timeout: 5000 }).toBe(true);
  expect(existsSync(join(dataDir, 'workspaces/run_1/files/ran'))).toBe(false);
});
