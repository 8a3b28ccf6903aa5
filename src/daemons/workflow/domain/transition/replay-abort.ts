import type { RunEnding } from '../../../../contracts/index.ts';
import type { AbortError } from '../run/effects.ts';
import type { Turn } from './turn.ts';

export const CANCELLED: AbortError = { code: 'EXECUTION_ERROR', message: 'The run was cancelled.' };
const TIMED_OUT: AbortError = {
  code: 'EXECUTION_TIMEOUT',
  message: 'The run or its job did not end in time.',
};

export const abortErrorOf = (how: RunEnding): AbortError => (how === 'cancelled' ? CANCELLED : TIMED_OUT);

/** Aborts the replay in flight. Does nothing if the replay is already aborted. */
export function abortReplay(turn: Turn, error: AbortError): void {
  const replay = turn.state.code?.replay;
  if (!replay || replay.isAborted) return;
  replay.isAborted = true;
  turn.effect({ type: 'replay.abort', error });
}
