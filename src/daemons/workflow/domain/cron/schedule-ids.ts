import { createHash } from 'node:crypto';
import type { ScheduleDefinition } from '../../../../contracts/index.ts';

type Plan = Pick<ScheduleDefinition, 'id' | 'cron' | 'timezone'> & { workflow?: string };

/**
 * Returns the declared id of each schedule, or else a hash of its fields. An index is not used, because changes of
 * other schedules could shift it, and a pause would then apply to a different schedule.
 */
export function scheduleIds(owner: string, plans: readonly Plan[]): string[] {
  const seen = new Map<string, number>();
  return plans.map((plan) => {
    const name = plan.id ?? hashOf(plan);
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return `${owner}:${count === 1 ? name : `${name}-${count}`}`;
  });
}

function hashOf({ cron, timezone, workflow = '' }: Plan): string {
  const fields = cron.trim().split(/\s+/).join(' ');
  return createHash('sha256').update([fields, timezone, workflow].join('\n')).digest('hex').slice(0, 8);
}

/** Returns the indexes of schedules whose id is already used by an earlier schedule. */
export function repeatedIds(plans: ReadonlyArray<{ id?: unknown }>): number[] {
  const ids = plans.map(({ id }) => id);
  return [...ids.keys()].filter((place) => ids[place] !== undefined && ids.indexOf(ids[place]) < place);
}
