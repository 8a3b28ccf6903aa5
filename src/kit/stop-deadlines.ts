import { seconds } from './duration.ts';

/**
 * Deadlines of a service that stops, counted from the end of its `drainMs`. Each ends what the one before it left over, so
 * they are in this order.
 */
export const STOP_DEADLINES = {
  /** Open connections are cut: accepting a full backlog may have taken part of `drainMs`. */
  httpCutMs: 500,
  /** The first process of a group kills its siblings, and then closes its store. */
  siblingKillMs: seconds(1),
  /** The process ends and says what held it up. */
  processEndMs: seconds(2),
  /** The supervisor ends the process by force. */
  forceMs: seconds(4),
};
