import { days, hours } from '../kit/time/duration.ts';

export const HOUR_MS = hours(1);
/** Retention of counts per hour. It exceeds the longest range that the API counts. */
export const HOUR_COUNTS_MS = days(40);

/** Returns the SQL expression for the start of the hour of a time in epoch ms. */
export function hourOf(time: string): string {
  return `${time} - ${time} % ${HOUR_MS}`;
}
