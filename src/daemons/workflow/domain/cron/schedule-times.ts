import { Cron } from 'croner';
import { messageOf } from '../../../../kit/errors/errors.ts';
import { namesDay } from './cron-days.ts';

/** Cron line and IANA time zone of a schedule. Croner applies daylight saving changes. */
interface Plan {
  cron: string;
  timezone: string;
}

/** Returns the first planned time later than `after`, or null if no later time is planned. */
export function nextTime({ cron, timezone }: Plan, after: number): number | null {
  return new Cron(cron, { timezone, paused: true }).nextRun(new Date(after))?.getTime() ?? null;
}

/**
 * Returns the fault of a schedule's cron line or time zone, or null. Uses `namesDay`, because croner takes seconds to
 * find that a schedule never fires.
 */
export function scheduleFault(plan: Plan): { key: 'cron' | 'timezone'; message: string } | null {
  try {
    new Intl.DateTimeFormat('en', { timeZone: plan.timezone });
  } catch {
    return {
      key: 'timezone',
      message: `"${plan.timezone}" is not a time zone; take a name such as "Europe/Berlin"`,
    };
  }
  try {
    if (namesDay(plan.cron)) return null;
  } catch (error) {
    return { key: 'cron', message: messageOf(error) };
  }
  return {
    key: 'cron',
    message: `"${plan.cron}" never matches: no year has a day that its day of month, month and weekday name; change one of them`,
  };
}

/** Returns the last planned time up to `now`, or null if no earlier time was planned. */
export function previousTime({ cron, timezone }: Plan, now: number): number | null {
  const [last] = new Cron(cron, { timezone, paused: true }).previousRuns(1, new Date(now + 1)) ?? [];
  return last?.getTime() ?? null;
}
