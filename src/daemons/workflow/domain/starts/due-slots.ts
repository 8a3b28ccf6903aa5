import { minutes } from '../../../../kit/time/duration.ts';
import type { ScheduleRecord } from '../../../../store/ports/index.ts';
import { nextTime, previousTime } from '../cron/schedule-times.ts';

/**
 * Maximum delay of a scheduled run with `catchUp: none`. A run with a longer delay is skipped. Shorter delays can occur
 * in a busy service.
 */
const ON_TIME_MS = minutes(1);
/** Maximum number of runs that `catchUp: all` starts for one schedule. */
export const MAX_CATCH_UP_RUNS = 100;

/**
 * Returns the due times for which runs must start, oldest first. The previous run blocked the schedule until
 * `blockedUntil`.
 */
export function slotsToServe(schedule: ScheduleRecord, now: number, blockedUntil: number): number[] {
  const { nextAt, catchUp } = schedule;
  if (nextAt === null) return [];
  const slots: number[] = [];
  let latest = nextAt;
  for (let slot: number | null = nextAt; slot !== null && slot <= now; slot = nextTime(schedule, slot)) {
    latest = slot;
    slots.push(slot);
    if (slots.length > MAX_CATCH_UP_RUNS) {
      // The loop stops here, because a schedule can have millions of missed times after a long downtime.
      latest = previousTime(schedule, now) ?? slot;
      break;
    }
  }
  if (catchUp === 'all') return slots.slice(0, MAX_CATCH_UP_RUNS);
  const isOnTime = now - Math.max(latest, blockedUntil) <= ON_TIME_MS;
  return catchUp === 'latest' || isOnTime ? [latest] : [];
}
