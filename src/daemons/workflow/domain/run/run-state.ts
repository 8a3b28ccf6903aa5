import type { RunEnding } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { InboxRecord } from '../../../../store/ports/index.ts';
import type { StepPart } from './run-parts.ts';

/** How a run left the engine. `lost`: another owner holds it. */
export type Departure = 'ended' | 'parked' | 'lost' | 'abandoned';

/** State shared by the components of a run in memory. */
export interface RunState {
  departure: Departure | null;
  /** How the run is being ended from outside; only its clean-up continues. */
  ending: RunEnding | null;
  /** No new work starts. */
  draining: boolean;
  /** Unused inbox entries. */
  inbox: InboxRecord[];
  /** Children reported as ended and not looked up since. */
  endedChildren: Set<string>;
  /** Steps to launch once all changes so far are durable. */
  launches: StepPart[];
  /** Advances the run. */
  advance(): void;
  /** Advances once for all steps that settle together, since each advance visits all steps of the run. */
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

/** Abort reasons of in-flight work. */
export const TIMED_OUT = new PlatformError('EXECUTION_TIMEOUT', 'The step did not end in time.');
export const RUN_TIMED_OUT = new PlatformError(
  'EXECUTION_TIMEOUT',
  'The run or its job did not end in time.',
);
export const CANCELLED = new PlatformError('EXECUTION_ERROR', 'The run was cancelled.');
/** Returns the abort reason for a step whose run or job ends this way. */
export const reasonOf = (how: RunEnding): PlatformError => (how === 'cancelled' ? CANCELLED : RUN_TIMED_OUT);
export const SHUT_DOWN = new PlatformError('SERVICE_UNAVAILABLE', 'The workflow service is stopping.');
