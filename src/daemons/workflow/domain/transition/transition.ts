import type { RunEvent, StampedEvent } from '../run/events.ts';
import type { Program } from '../run/program.ts';
import { jobsOf, type RunState } from '../run/state.ts';
import type { Transition } from '../run/writes.ts';
import { noteAnswer } from './answers.ts';
import { noteOpenChildren } from './children.ts';
import { beginCleanUp } from './clean-up.ts';
import { endOverrun } from './own-steps.ts';
import { endReplay } from './replay-end.ts';
import { answerRequests, endIdle, takeRequest } from './replay-requests.ts';
import { advanceRun, beginRun, retryPlugins } from './runs.ts';
import { type StepEvent, takeStepEvent } from './step-events.ts';
import { dequeue } from './steps.ts';
import { Turn } from './turn.ts';

/** Applies an event to a run without I/O. Changes `state` in place. Returns the resulting writes and effects. */
export function transition(state: RunState, event: StampedEvent, program: Program): Transition {
  const turn = new Turn(state, event, program);
  if (state.phase !== 'active') return turn.result();
  if (apply(turn, event)) advanceRun(turn);
  const { code } = state;
  if (code?.replay) answerRequests(turn, code, code.replay);
  return turn.result();
}

/** Applies an event to the state. Returns whether the run must be advanced at once. */
function apply(turn: Turn, event: RunEvent): boolean {
  const { state } = turn;
  switch (event.type) {
    case 'claimed':
      beginRun(turn);
      return true;
    case 'advance':
      return true;
    case 'news':
      return takeNews(state, event);
    case 'cancel':
      if (state.run.status !== 'cancelling') beginCleanUp(turn, 'cancelled', 'caller');
      return true;
    case 'plugins.changed':
      retryPlugins(turn);
      return true;
    case 'drain':
      state.draining = true;
      for (const { steps } of jobsOf(state)) dequeue(turn, steps);
      return true;
    case 'undrain':
      state.draining = false;
      return true;
    case 'logged': {
      const { level, message, job, step } = event;
      turn.log({ level, message, job, ...(step === undefined ? {} : { step }) });
      return false;
    }
    case 'evaluated':
      return noteAnswer(turn, event);
    case 'children.open':
      noteOpenChildren(turn, event.open, event.ended);
      return true;
    default:
      return isReplayEvent(event) ? takeReplayEvent(turn, event) : takeStepEvent(turn, event);
  }
}

/** Adds an inbox entry and ended children to the state. */
function takeNews(state: RunState, { entry, endedChildren }: Extract<RunEvent, { type: 'news' }>): boolean {
  for (const id of endedChildren) state.endedChildren.add(id);
  if (entry && !state.seenEntries.has(entry.n)) {
    state.seenEntries.add(entry.n);
    state.inbox = [...state.inbox, entry];
  }
  return true;
}

type ReplayEvent = Extract<RunEvent, { type: `replay.${string}` }>;
const isReplayEvent = (event: ReplayEvent | StepEvent): event is ReplayEvent =>
  event.type.startsWith('replay.');

function takeReplayEvent(turn: Turn, event: ReplayEvent): boolean {
  const { code } = turn.state;
  if (!code) return false;
  switch (event.type) {
    case 'replay.rested':
      if (code.isResting) code.due = true;
      code.isResting = false;
      return true;
    case 'replay.idle':
      endIdle(turn, event.replay);
      return false;
    case 'replay.overrun':
      if (code.replay?.id === event.replay) endOverrun(turn, event.step);
      return false;
    case 'replay.ended':
      if (code.replay?.id !== event.replay) return false;
      endReplay(turn, code, code.replay, event.outcome, event.isAborted);
      return true;
    default:
      return takeRequest(turn, code, event);
  }
}
