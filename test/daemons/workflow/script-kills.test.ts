import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { decideStep, startRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startProcess } from './support/process.ts';
import { processesOf } from './support/processes-of.ts';

test('a SIGKILL of the service leaves no process of a script; it is repeated as its step says', async () => {
  const dataDir = await tempDir();
  await mkdir(join(dataDir, 'workflows'));
  const run = 'echo x >> attempts; echo "$SVC_ATTEMPT" > begun; [ -e go ] || sleep 31536001';
  const file = (id: string, more: object) => ({
    id,
    jobs: { main: { steps: [{ id: 'script', run, ...more }] } },
  });
  await writeFile(join(dataDir, 'workflows/ask.yaml'), JSON.stringify(file('ask', {})));
  await writeFile(join(dataDir, 'workflows/again.yaml'), JSON.stringify(file('again', { idempotent: true })));

  const first = await startProcess(dataDir, {});
  const started = await Promise.all(
    ['ask', 'again'].map((workflowId) => first.call(startRun, { body: { workflowId } } as never)),
  );
  const [ask, again] = started.map(({ run: { id } }): string => id) as [string, string];
  const fileOf = (id: string, name: string) => join(dataDir, 'workspaces', id, 'files', name);
  await vi.waitFor(() => expect([ask, again].every((id) => existsSync(fileOf(id, 'begun')))).toBe(true), {
    timeout: 15_000,
    interval: 50,
  });
  await vi.waitFor(() => expect(processesOf('sleep 31536001').length).toBe(2), { timeout: 5000 });
  await first.kill('SIGKILL');
  await vi.waitFor(() => expect(processesOf('sleep 31536001')).toEqual([]), { timeout: 5000 });

  for (const id of [ask, again]) await writeFile(fileOf(id, 'go'), '');
  const second = await startProcess(dataDir, {}, first);
  await vi.waitFor(async () => expect((await second.run(again)).status).toBe('succeeded'), {
    timeout: 15_000,
  });
  expect(await second.steps(ask)).toMatchObject([{ status: 'waiting', waitingFor: { for: 'decision' } }]);
  expect(readFileSync(fileOf(ask, 'attempts'), 'utf8')).toBe('x\n');
  await second.call(decideStep, {
    params: { runId: ask, stepId: 'main.script' },
    body: { action: 'retry' },
  } as never);
  await vi.waitFor(async () => expect((await second.run(ask)).status).toBe('succeeded'), { timeout: 15_000 });
  await vi.waitFor(() => expect(existsSync(fileOf(ask, ''))).toBe(false), { timeout: 5000 });
});
