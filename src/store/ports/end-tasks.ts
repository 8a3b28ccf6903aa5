import type { EventRecord } from './workflow-records.ts';

/** Work that remains after the end of a run: one handler of its definition. */
export interface EndTask {
  /** Id of the ended run, a slash and the number of the handler. */
  key: string;
  runId: string;
  /** Number of the handler in the definition. */
  handler: number;
  /** Number of attempts, the current one included. Claims that ended with `release` do not count. */
  attempts: number;
  endedAt: number;
}

/**
 * Tasks of ended runs. A trigger creates them in the transaction that ends the run. Another trigger deletes the task in
 * the transaction that stores the started run. @spec docs/decisions/0280
 */
export interface EndTaskStore {
  /** Returns due tasks, and postpones them to `until`, so that no other process takes them before. */
  claim(times: { now: number; until: number }, limit: number): Promise<EndTask[]>;
  /** Returns the time of the next due task. */
  nextDue(): Promise<number | null>;
  /** Postpones a task after a failed attempt. */
  postpone(key: string, dueAt: number): Promise<void>;
  /** Ends a claim without an attempt. */
  release(key: string, dueAt: number): Promise<void>;
  /** Deletes a task, and adds the event to the ended run if the task still existed. */
  finish(key: string, event: EventRecord | null): Promise<void>;
}
