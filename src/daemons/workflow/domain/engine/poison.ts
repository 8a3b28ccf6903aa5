import type { RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';

/** So many ends of the service by SIGKILL weigh as much as one crash: a handler may have sent them, but hardly did. */
const KILLS_PER_CRASH = 10;

type Counted = Pick<RunRecord, 'crashes' | 'kills'>;

/** Ends of the service with work of the run in flight, since it made progress, in crashes. */
function weightOf({ crashes, kills }: Counted): number {
  return crashes + Math.floor(kills / KILLS_PER_CRASH);
}

/** Whether a run has brought the service down often enough to be given up. */
export function isPoison(run: Counted, poisonAfter: number): boolean {
  return weightOf(run) >= poisonAfter;
}

/** Whether the next crash would be its last. */
export function isSuspect(run: Counted, poisonAfter: number): boolean {
  return weightOf(run) >= suspectLimit(poisonAfter).crashes;
}

/** The same for the store. */
export function suspectLimit(poisonAfter: number): SuspectLimit {
  return { crashes: Math.max(1, poisonAfter - 1), killsPerCrash: KILLS_PER_CRASH };
}
