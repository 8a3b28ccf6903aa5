import type { RunEvent } from '../run/events.ts';
import type { Turn } from './turn.ts';

/**
 * Stores the value of an expression that a worker thread evaluated, so that the run can continue. Returns false if the
 * run no longer waits for the value.
 */
export function noteAnswer(turn: Turn, { id, answer }: Extract<RunEvent, { type: 'evaluated' }>): boolean {
  const { answers } = turn.state;
  if (answers.get(id) !== 'pending') return false;
  answers.set(id, answer);
  turn.unmark();
  return true;
}
