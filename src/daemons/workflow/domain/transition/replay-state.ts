import type { CodeState } from '../run/code-state.ts';
import type { Hold, RunState } from '../run/state.ts';

/** Whether a replay is in flight or about to start. */
export function isReplaying({ code, draining }: RunState): boolean {
  if (!code) return false;
  return code.replay !== null || ((code.isResting || code.slot === 'queued') && !draining);
}

/** Reason why a replay cannot begin. */
export function replayHold({ replay, wasAway, slot }: CodeState): Hold {
  if (replay?.hasBegun) return null;
  if (wasAway) return 'plugin';
  return replay || slot === 'queued' ? 'others' : null;
}
