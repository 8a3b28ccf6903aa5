import type { RunRecord, SuspectLimit } from '../../../../store/ports/index.ts';

/** Number of SIGKILL exits that count as one crash. Handlers rarely cause a SIGKILL. */
const KILLS_PER_CRASH = 10;

type Counted = Pick<RunRecord, 'crashes' | 'kills'>;

/** Returns the number of crashes since the last progress of the run. `KILLS_PER_CRASH` kills count as one crash. */
function weightOf({ crashes, kills }: Counted): number {
  return crashes + Math.floor(kills / KILLS_PER_CRASH);
}

/** Returns whether the run must fail, because the service crashed too often while work of the run was in flight. */
export function isPoison(run: Counted, poisonAfter: number): boolean {
  return weightOf(run) >= poisonAfter;
}

/** Returns whether one more crash of the service would fail the run. */
export function isSuspect(run: Counted, poisonAfter: number): boolean {
  return weightOf(run) >= suspectLimit(poisonAfter).crashes;
}

/** Returns thresholds for store queries. One more crash fails a run that has reached a threshold. */
export function suspectLimit(poisonAfter: number): SuspectLimit {
  return { crashes: Math.max(1, poisonAfter - 1), killsPerCrash: KILLS_PER_CRASH };
}
