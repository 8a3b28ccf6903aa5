import type { RunEvent } from '../run/events.ts';
import type { Turn } from './turn.ts';

/** Keeps the value of an expression that a thread evaluated. True: the run may go on with it. */
export function noteAnswer(turn: Turn, { id, answer }: Extract<RunEvent, { type: 'evaluated' }>): boolean {
  const { answers } = turn.state;
  if (answers.get(id) !== 'pending') return false;
  answers.set(id, answer);
  turn.unmark();
  return true;
}
