import type { RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';

/** Number of ends by SIGKILL that count as much as one crash. A handler can cause a SIGKILL, but rarely does. */
const KILLS_PER_CRASH = 10;

type Counted = Pick<RunRecord, 'crashes' | 'kills'>;

/** Returns the number of crashes since the last progress of the run, with kills converted to crashes. */
function weightOf({ crashes, kills }: Counted): number {
  return crashes + Math.floor(kills / KILLS_PER_CRASH);
}

/** Returns whether a run has crashed the service so often that it must fail. */
export function isPoison(run: Counted, poisonAfter: number): boolean {
  return weightOf(run) >= poisonAfter;
}

/** Returns whether the next crash would fail the run. */
export function isSuspect(run: Counted, poisonAfter: number): boolean {
  return weightOf(run) >= suspectLimit(poisonAfter).crashes;
}

/**
 * Returns the number of crashes from which a run is a suspect, and the number of kills that count as a crash, for
 * queries of the store.
 */
export function suspectLimit(poisonAfter: number): SuspectLimit {
  return { crashes: Math.max(1, poisonAfter - 1), killsPerCrash: KILLS_PER_CRASH };
}
