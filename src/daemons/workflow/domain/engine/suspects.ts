import type { RunRecord } from '../../../../store/ports/index.ts';
import { isSuspect } from './poison.ts';

/** Runs whose next crash is their last: work of theirs was in flight each time that the service died. */
export interface Suspects {
  /** False while another suspect is at work; the run is handed to `again` when its turn comes. */
  mayBegin(run: RunRecord): boolean;
  /** The run is out of memory, or has finished a step since. */
  left(run: Pick<RunRecord, 'id'>): void;
}

/** Lets one suspect at a time begin, so that a crash with several of them in flight does not fail them all. */
export function createSuspects(poisonAfter: number, again: (run: RunRecord) => void): Suspects {
  const waiting = new Map<string, RunRecord>();
  let atWork: string | null = null;

  return {
    mayBegin(run) {
      if (!isSuspect(run, poisonAfter) || run.id === atWork) return true;
      if (atWork !== null) {
        waiting.set(run.id, run);
        return false;
      }
      waiting.delete(run.id);
      atWork = run.id;
      return true;
    },
    left({ id }) {
      if (id !== atWork) return;
      atWork = null;
      const [next] = waiting.values();
      if (!next) return;
      waiting.delete(next.id);
      again(next);
    },
  };
}
