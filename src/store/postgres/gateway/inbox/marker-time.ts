import type { Clock } from '../../../../kit/time/clock.ts';
import { DATABASE_TIME } from '../../database-clock.ts';

/**
 * Clock by which markers expire: that of the database. With the clocks of the nodes, a node whose clock is ahead would
 * take over the id of a delivery that runs on another node.
 */
export interface MarkerTime {
  /** Returns the ms from now until a time of this node's clock. */
  untilMs(at: number): number;
  /** Time for the parameter of `markerNow`. */
  now(): number | null;
}

/** `leaseClock` replaces the clock of the database in tests. */
export function markerTime(clock: Clock, leaseClock: Clock | undefined): MarkerTime {
  return { untilMs: (at) => at - clock.now(), now: () => leaseClock?.now() ?? null };
}

/** Returns SQL for the current time, which a parameter replaces in tests. */
export const markerNow = (parameter: `$${number}`): string =>
  `coalesce(${parameter}::bigint, ${DATABASE_TIME})`;
