import type { ConfinedTask } from '../domain/definition/evaluator.ts';
import type { Path } from '../domain/definition/templates.ts';

export interface TaskMessage {
  id: number;
  task: ConfinedTask;
}

export type TaskReply = { id: number } & (
  | { ok: true; value: unknown }
  | { ok: false; error: { message: string; path: Path; isLimit: boolean } }
);

export interface ThreadStart {
  /** Shared number that holds the id of the task in progress, or 0 between tasks. */
  current: Int32Array;
}
