import { createHash } from 'node:crypto';
import type { ScheduleDefinition } from '../../../../contracts/index.ts';

type Plan = Pick<ScheduleDefinition, 'id' | 'cron' | 'timezone'> & { workflow?: string };

/**
 * The ids of plans, in their order: each plan's own id, or a hash of what makes it this plan. Its place would be another
 * one as soon as a plan before it came or went, and what is known of it, such as a pause, would go to its neighbour.
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

/** The places of plans whose own id another one before them has. */
export function repeatedIds(plans: ReadonlyArray<{ id?: unknown }>): number[] {
  const ids = plans.map(({ id }) => id);
  return [...ids.keys()].filter((place) => ids[place] !== undefined && ids.indexOf(ids[place]) < place);
}
