import { describe, expect, test } from 'vitest';
import type { WorkflowStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';
import { change, started } from './workflow.ts';

/** Tests that every driver of EndTaskStore passes. @spec docs/decisions/0280 */
export function describeEndTasks(name: string, open: OpenDriver<WorkflowStore>): void {
  describe(`tasks of ended runs: ${name}`, () => {
    test('processes that finish the same task add one event', async () => {
      const { port } = await openFresh(open);
      const { run, key } = await failedRun(port);
      const claimed = await port.endTasks.claim({ now: 7000, until: 17_000 }, 10);
      expect(claimed).toMatchObject([{ key, runId: run.id, handler: 0, attempts: 1 }]);
      const event = { at: 8000, type: 'run.message_sent', data: { messageId: 'm' } };
      await times(60, () => port.endTasks.finish(key, event));
      const events = await port.runs.events(run.seq, 0, 100);
      expect(events.filter(({ item }) => item.type === event.type)).toHaveLength(1);
      await port.endTasks.finish(key, event);
      expect(await port.runs.events(run.seq, 0, 100)).toHaveLength(events.length);
      expect(await port.endTasks.nextDue()).toBeNull();
    });

    test('released and interrupted claims do not count as attempts', async () => {
      const { port } = await openFresh(open);
      const { key } = await failedRun(port);
      const attemptAt = async (now: number) => {
        const [task] = await port.endTasks.claim({ now, until: now + 10_000 }, 10);
        return task?.attempts;
      };
      expect(await attemptAt(7000)).toBe(1);
      await port.endTasks.release(key, 8000);
      expect(await port.endTasks.nextDue()).toBe(8000);
      expect(await attemptAt(8000)).toBe(1);
      expect(await attemptAt(18_000)).toBe(1);
      await port.endTasks.postpone(key, 19_000);
      expect(await attemptAt(18_999)).toBeUndefined();
      expect(await attemptAt(19_000)).toBe(2);
    });
  });
}

/** Stores a run that failed at 7000, with one task. */
async function failedRun(port: WorkflowStore) {
  const run = await started(port, { endTasks: '{"failed":[0]}' });
  const failed = { status: 'failed', ready: false, reason: null, finishedAt: 7000 } as const;
  await port.runs.write(change(run, { fence: null, status: 'queued' }, failed));
  return { run, key: `${run.id}/0` };
}
