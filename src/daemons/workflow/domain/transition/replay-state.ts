import type { CodeState } from '../run/code-state.ts';
import type { Hold, RunState } from '../run/state.ts';

/** Returns whether a replay is in flight or about to start. */
export function isReplaying({ code, draining }: RunState): boolean {
  if (!code) return false;
  return code.replay !== null || ((code.isResting || code.slot === 'queued') && !draining);
}

/**
 * Returns the reason why the clean-up timer is paused before the function begins. Returns null if nothing pauses the
 * timer.
 */
export function replayHold({ replay, wasUnavailable, slot }: CodeState): Hold {
  if (replay?.hasBegun) return null;
  if (wasUnavailable) return 'plugin';
  return replay || slot === 'queued' ? 'others' : null;
}
