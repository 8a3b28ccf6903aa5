import { Cron } from 'croner';
import { messageOf } from '../../../../kit/errors.ts';

/** A plan as croner reads it, time zone changes included. */
interface Plan {
  cron: string;
  timezone: string;
}

/** The first planned time after `after`; null when there is none. */
export function nextTime({ cron, timezone }: Plan, after: number): number | null {
  return new Cron(cron, { timezone, paused: true }).nextRun(new Date(after))?.getTime() ?? null;
}

/** What is wrong with a plan; null when nothing is. */
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
    new Cron(plan.cron, { timezone: plan.timezone, paused: true });
    return null;
  } catch (error) {
    return { key: 'cron', message: messageOf(error) };
  }
}

/** The last planned time up to now. */
export function previousTime({ cron, timezone }: Plan, now: number): number | null {
  const [last] = new Cron(cron, { timezone, paused: true }).previousRuns(1, new Date(now + 1)) ?? [];
  return last?.getTime() ?? null;
}
