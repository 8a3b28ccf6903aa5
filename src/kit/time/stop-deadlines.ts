import { seconds } from './duration.ts';

/**
 * Deadlines of a stopping service, counted from the end of its `drainMs`. Each step takes effect only if the previous
 * one failed.
 */
export const STOP_DEADLINES = {
  /** Open connections are closed. The margin is for accepting a full backlog, which may use part of `drainMs`. */
  httpCutMs: 500,
  /** The first process of a group kills its siblings, then closes its store. */
  siblingKillMs: seconds(1),
  /** The process exits and logs what held it up. */
  processEndMs: seconds(2),
  /** The supervisor kills the process. */
  forceMs: seconds(4),
};
