import type { Clock } from '../../../../kit/time/clock.ts';
import { DATABASE_TIME } from '../../database-clock.ts';

/**
 * Clock of the database, by which markers expire. With clocks per node, a node whose clock is ahead could take over a
 * delivery that another node is running.
 */
export interface MarkerTime {
  /** Returns the time in ms from now until `at`, by this node's clock. */
  untilMs(at: number): number;
  /** Time for the parameter of `markerNow`, or null to use the database's clock. */
  now(): number | null;
}

/** `leaseClock` replaces the clock of the database in tests. */
export function markerTime(clock: Clock, leaseClock: Clock | undefined): MarkerTime {
  return { untilMs: (at) => at - clock.now(), now: () => leaseClock?.now() ?? null };
}

/** Returns SQL for the current time, which a parameter replaces in tests. */
export const markerNow = (parameter: `$${number}`): string =>
  `coalesce(${parameter}::bigint, ${DATABASE_TIME})`;
