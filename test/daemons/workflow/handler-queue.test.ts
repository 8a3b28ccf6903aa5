import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { postCancelRun } from '../../../src/contracts/index.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'narrow',
  version: '1.0.0',
  permissions: { quotas: { queue: 1 } },
  commands: [
    { id: 'hang', handler: 'code.js#hang' },
    { id: 'quick', handler: 'code.js#quick' },
  ],
};

async function startNarrow() {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/narrow');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'package.json'), '{"name": "narrow", "version": "1.0.0", "type": "module"}');
  await writeFile(
    join(folder, 'code.js'),
    'export const hang = () => new Promise(() => {});\nexport const quick = () => 1;\n',
  );
  return startWorkflow({ projectDir, config: { execution: { worker: { maxProcesses: 1 } } } });
}

/** Waits until the handler of the step `s` has begun: that is written with what happens next, or soon after. */
async function begun(it: TestWorkflow, id: string): Promise<void> {
  const startedAt = async () => {
    it.clock.advance(50);
    return (await it.step(id, 'main.s')).startedAt;
  };
  await expect.poll(startedAt, { timeout: 20_000 }).not.toBeNull();
}

test('a step that waits for a process of its plugin is queued: neither its timeout nor a full queue fails it', async () => {
  const it = await startNarrow();
  const blocker = await it.start({ steps: [{ id: 's', uses: 'narrow/hang', timeoutMs: minutes(600) }] });
  const step = (id: string) => it.step(id, 'main.s');
  await begun(it, blocker);
  const queuedAt = it.clock.now();
  const quick = { steps: [{ id: 's', uses: 'narrow/quick', timeoutMs: 1000 }] };
  // One waits in the queue, which has room for one; the others are held back.
  const ids = await Promise.all([it.start(quick), it.start(quick), it.start(quick)]);
  for (const id of ids) await expect.poll(async () => (await step(id)).status).toBe('running');
  it.clock.advance(minutes(5));
  for (const id of ids)
    expect(await step(id)).toMatchObject({ status: 'running', queuedAt, startedAt: null });
  await it.call(postCancelRun, { params: { runId: blocker as never } });
  await it.until(blocker, 'cancelled');
  const begunAt = it.clock.now();
  for (const id of ids) {
    await it.until(id, 'succeeded');
    const found = await step(id);
    expect(found).toMatchObject({ readyAt: queuedAt, queuedAt, startedAt: begunAt, attempts: 1 });
    expect(found.history).toMatchObject([
      { queuedAt, startedAt: begunAt, waitingAt: null, finishedAt: begunAt },
    ]);
  }
  // A refused try is no execution: each step is one, and only the cancelled one failed.
  const runsOf = (event: string) =>
    it.logs.lines.filter(({ type }) => type === event).map(({ runId }) => runId);
  await expect.poll(() => runsOf('plugin.command.completed').sort()).toEqual([...ids].sort());
  expect(runsOf('plugin.command.failed')).toEqual([blocker]);
}, 60_000);

test('a handler that has begun has its time, and no more', async () => {
  const it = await startNarrow();
  const id = await it.start({ steps: [{ id: 's', uses: 'narrow/hang', timeoutMs: 60_000 }] });
  await begun(it, id);
  it.clock.advance(60_000);
  await it.until(id, 'failed');
  const { status, startedAt, history } = await it.step(id, 'main.s');
  expect(status).toBe('timed_out');
  expect(history).toMatchObject([{ status: 'timed_out', startedAt }]);
}, 60_000);

test('the times of a wait, a retry and its attempts make a timeline', async () => {
  const it = await startWorkflow();
  const start = it.clock.now();
  const id = await it.start({ steps: [{ id: 'nap', uses: 'wait', with: { ms: 1000 } }] });
  await it.until(id, 'waiting');
  expect(await it.step(id, 'main.nap')).toMatchObject({
    queuedAt: start,
    startedAt: start,
    attemptStartedAt: start,
    waitingAt: start,
    finishedAt: null,
  });
  it.clock.advance(1000);
  await it.services.engine.tick();
  await it.until(id, 'succeeded');
  expect((await it.step(id, 'main.nap')).history).toMatchObject([
    { queuedAt: start, startedAt: start, waitingAt: start, finishedAt: start + 1000 },
  ]);
});
