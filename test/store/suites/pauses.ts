import { describe, expect, test } from 'vitest';
import type { RunRecord, WorkflowStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh } from './driver.ts';
import { boot, change, claim, newRun, OPTIONS, started } from './workflow.ts';

export const KEYED = { concurrencyKey: 'acme\nk', concurrencyLimit: 1 };
export const NIGHTLY = { tenantId: 'acme', workflowId: 'nightly' };

const found = async (store: WorkflowStore, { id }: RunRecord) => (await store.runs.find('acme', id))!;
const REFUSED = { status: 'failed' as const, error: { code: 'C', message: 'taken', details: {} } };

/** Ends a run that holds its key. Returns the ids of the runs that became ready. */
async function end(store: WorkflowStore, run: RunRecord): Promise<string[]> {
  const { promoted } = await store.runs.cancelIdle(run.seq, 3000);
  return promoted.map(({ id }) => id);
}

/** Releases the due runs as the engine does. Returns the ids of those that acquired their key. */
async function release(store: WorkflowStore): Promise<string[]> {
  const ready: string[] = [];
  const due = store.shared ? await store.shared.planned(9000, 10) : await store.queue.due(9000, 10);
  for (const { seq } of due) {
    const released = await store.queue.release(seq, { at: 9000, strategy: 'queue', refused: REFUSED });
    if (released?.run.ready) ready.push(released.run.id);
  }
  return ready;
}

/** Tests that every driver of PauseStore passes. @spec docs/workflows.md "Pause and resume" */
export function describePauses(name: string, open: OpenDriver<WorkflowStore>): void {
  describe(`pauses: ${name}`, () => {
    test('a run whose first write comes after the pause of its workflow has begun, and is not paused', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      const [begun, paused] = [await started(port), await started(port)];
      await port.pauses.pauseRun(paused.seq, 1);
      await port.pauses.pauseWorkflow(NIGHTLY);
      expect(await found(port, begun)).toMatchObject({ pauseScope: 'workflow' });
      for (const run of [begun, paused])
        expect(await port.runs.write(claim(run, fence))).toMatchObject({ applied: true });
      expect(await found(port, begun)).toMatchObject({ pauseScope: null });
      expect(await found(port, paused)).toMatchObject({ pauseScope: 'run' });
    });

    test('runs of a paused workflow leave their concurrency key to other workflows, and acquire it in order', async () => {
      const { port } = await openFresh(open);
      await port.pauses.pauseWorkflow(NIGHTLY);
      const paused = [await started(port, KEYED), await started(port, KEYED)];
      for (const run of paused) expect(run).toMatchObject({ ready: false, pauseScope: 'workflow' });
      const other = await started(port, { ...KEYED, workflowId: 'other' });
      expect(other.ready).toBe(true);
      expect(await end(port, other)).toEqual([]);
      await port.pauses.resumeWorkflow(NIGHTLY);
      expect(await found(port, paused[0]!)).toMatchObject({ ready: true, reason: 'capacity' });
      expect(await found(port, paused[1]!)).toMatchObject({ ready: false, reason: 'concurrency' });
      expect(await end(port, paused[0]!)).toEqual([paused[1]!.id]);
    });

    test('resumed runs whose key is taken wait like other runs, and apply no strategy', async () => {
      const { port } = await openFresh(open);
      const holder = await started(port, { ...KEYED, workflowId: 'other' });
      const [waiting, ofWorkflow] = [await started(port, KEYED), await started(port, KEYED)];
      await port.pauses.pauseRun(waiting.seq, 1);
      await port.pauses.pauseWorkflow(NIGHTLY);
      await port.pauses.resumeWorkflow(NIGHTLY);
      await port.pauses.resumeRun(waiting.seq, 2);
      for (const run of [waiting, ofWorkflow])
        expect(await found(port, run)).toMatchObject({ ready: false, reason: 'concurrency', wakeAt: null });
      expect(await release(port)).toEqual([]);
      expect(await end(port, holder)).toEqual([waiting.id]);
    });

    test.each(['replace-queued', 'cancel-running'] as const)(
      'paused runs do not give way by %s',
      async (strategy) => {
        const { port } = await openFresh(open);
        const holder = await started(port, KEYED);
        const [paused, waiting] = [await started(port, KEYED), await started(port, KEYED)];
        await port.pauses.pauseRun(paused.seq, 1);
        const next = await port.runs.start(newRun({ ...KEYED, workflowId: 'other' }), {
          ...OPTIONS,
          strategy,
        });
        const superseded = strategy === 'cancel-running' ? [holder.id, waiting.id] : [waiting.id];
        expect(next.outcome === 'started' && next.supersedes.toSorted()).toEqual(superseded);
      },
    );

    test('a resumed workflow acquires each of its keys up to its limit', async () => {
      const { port } = await openFresh(open);
      await port.pauses.pauseWorkflow(NIGHTLY);
      const keys = ['acme\na', 'acme\nb', 'acme\nb', 'acme\nb', null];
      const runs: RunRecord[] = [];
      for (const concurrencyKey of keys)
        runs.push(await started(port, { concurrencyKey, concurrencyLimit: 2 }));
      await port.pauses.resumeWorkflow(NIGHTLY);
      const resumed = await Promise.all(runs.map((run) => found(port, run)));
      expect(resumed.map(({ ready }) => ready)).toEqual([true, true, true, false, true]);
    });

    test('a key that becomes free is passed over paused runs, which acquire it once they are resumed', async () => {
      const { port } = await openFresh(open);
      const holder = await started(port, { ...KEYED, workflowId: 'other' });
      const [first, ofWorkflow] = [await started(port, KEYED), await started(port, KEYED)];
      const last = await started(port, { ...KEYED, workflowId: 'other' });
      await port.pauses.pauseRun(first.seq, 1);
      await port.pauses.pauseWorkflow(NIGHTLY);
      expect(await end(port, holder)).toEqual([last.id]);
      expect(await end(port, last)).toEqual([]);
      await port.pauses.resumeRun(first.seq, 2);
      expect(await found(port, first)).toMatchObject({ ready: true, pauseScope: null });
      await port.pauses.resumeWorkflow(NIGHTLY);
      expect(await end(port, first)).toEqual([ofWorkflow.id]);
    });

    test('a paused run keeps a key that it holds, and its clean-up passes the key on', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      const holder = await started(port, KEYED);
      await port.runs.write(claim(holder, fence));
      await port.pauses.pauseRun(holder.seq, 1);
      const next = await started(port, { ...KEYED, workflowId: 'other' });
      expect(next.ready).toBe(false);
      const ended = { status: 'cancelled' as const, ready: false, fence: null, finishedAt: 1 };
      const write = change(holder, { fence, status: 'running' }, ended);
      expect((await port.runs.write(write)).promoted.map(({ id }) => id)).toEqual([next.id]);
    });

    test('a planned run of a paused workflow waits, and starts once it is resumed', async () => {
      const { port } = await openFresh(open);
      await port.pauses.pauseWorkflow(NIGHTLY);
      const run = await started(port, { createdAt: 1, runAt: 5000 });
      expect(run).toMatchObject({ reason: 'scheduled', pauseScope: 'workflow' });
      expect(await release(port)).toEqual([]);
      await port.pauses.resumeWorkflow(NIGHTLY);
      expect(await release(port)).toEqual([run.id]);
    });
  });
}
