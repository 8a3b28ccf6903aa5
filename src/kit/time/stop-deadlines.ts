import { seconds } from './duration.ts';

/**
 * Deadlines of a stopping service, in ms after the end of its `drainMs`. A deadline has no effect if the service has
 * already stopped.
 */
export const STOP_DEADLINES = {
  /**
   * Time at which open connections are closed. The margin is needed because accepting a full backlog can use part of
   * `drainMs`.
   */
  httpCutMs: 500,
  /** Time at which the process exits and logs the steps that have not finished. */
  processEndMs: seconds(2),
  /** Time at which the supervisor kills the process. */
  forceMs: seconds(4),
};
