import type { RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { Scope } from '../definition/expressions.ts';
import { endScope } from '../run/ended-run.ts';

/** An ended run with the variables of its handlers' expressions. */
export class EndedRun {
  readonly record: RunRecord;
  #scope: Scope | undefined;

  constructor(record: RunRecord) {
    this.record = record;
  }

  get scope(): Scope {
    this.#scope ??= endScope(this.record);
    return this.#scope;
  }
}

/** Returns a function that reads each run once, because tasks of one run are usually claimed together. */
export function endedRunReader(
  runs: Pick<RunStore, 'find'>,
): (runId: string) => Promise<EndedRun | undefined> {
  const known = new Map<string, Promise<EndedRun | undefined>>();
  const read = async (runId: string): Promise<EndedRun | undefined> => {
    const record = await runs.find(null, runId);
    return record && new EndedRun(record);
  };
  return (runId) => {
    const reading = known.get(runId) ?? read(runId);
    known.set(runId, reading);
    return reading;
  };
}
