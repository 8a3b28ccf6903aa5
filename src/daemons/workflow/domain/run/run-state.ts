import type { RunEnding } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { InboxRecord } from '../../../../store/ports/index.ts';
import type { StepPart } from './run-parts.ts';

/** How the engine is left by a run. `lost`: somebody else holds it by now. */
export type Departure = 'ended' | 'parked' | 'lost' | 'abandoned';

/** What the parts of a run in memory have in common. */
export interface RunState {
  departure: Departure | null;
  /** The run is being ended from outside: nothing of it but its clean-up goes on. */
  ending: RunEnding | null;
  /** Nothing more is started. */
  draining: boolean;
  /** What came and was not used yet. */
  inbox: InboxRecord[];
  /** Children that are said to have ended, and were not looked up since. */
  endedChildren: Set<string>;
  /** Steps to be started once what happened so far is durable. */
  launches: StepPart[];
  /** Looks at the run anew. */
  advance(): void;
  /** Advances once for all steps that settle together: each advance visits all steps of the run. */
  advanceSoon(): void;
}

/** Returns a function that calls `work` in the next microtask, once for all calls until then. */
export function coalesced(work: () => void): () => void {
  let isPending = false;
  return () => {
    if (isPending) return;
    isPending = true;
    queueMicrotask(() => {
      isPending = false;
      work();
    });
  };
}

/** Why what is in the air is aborted. */
export const TIMED_OUT = new PlatformError('EXECUTION_TIMEOUT', 'The step did not end in time.');
export const RUN_TIMED_OUT = new PlatformError(
  'EXECUTION_TIMEOUT',
  'The run or its job did not end in time.',
);
export const CANCELLED = new PlatformError('EXECUTION_ERROR', 'The run was cancelled.');
/** Why a step of a run or job that ends as this is aborted. */
export const reasonOf = (how: RunEnding): PlatformError => (how === 'cancelled' ? CANCELLED : RUN_TIMED_OUT);
export const SHUT_DOWN = new PlatformError('SERVICE_UNAVAILABLE', 'The workflow service is stopping.');
