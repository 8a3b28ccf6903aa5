import type { ManifestV3 } from '../../contracts/index.ts';
import { isRecord } from '../../kit/data/is-record.ts';

/**
 * Maximum number of schedules of a plugin, including schedules of its workflows. All schedules are planned again on
 * each plugin change.
 */
export const MAX_PLUGIN_SCHEDULES = 200;

/** Workflows and schedules of a plugin that are accepted or refused by its schedule limit. */
export interface ScheduleLimit {
  /** Indexes of workflows that are refused because their schedules exceed the limit. */
  refusedWorkflows: ReadonlySet<number>;
  /** Number of entries of the manifest's `schedules`, counted from the first, that are within the limit. */
  schedules: number;
  faults: Array<{ path: string; message: string }>;
}

/**
 * Applies the schedule limit to a manifest. The schedules of its workflows are counted before the manifest's own
 * schedules.
 */
export function scheduleLimit({
  workflows,
  schedules,
}: Pick<ManifestV3, 'workflows' | 'schedules'>): ScheduleLimit {
  const refusedWorkflows = new Set<number>();
  const faults: ScheduleLimit['faults'] = [];
  let room = MAX_PLUGIN_SCHEDULES;
  for (const [index, { on }] of workflows.entries()) {
    const count = isRecord(on) && Array.isArray(on.schedule) ? on.schedule.length : 0;
    if (count <= room) room -= count;
    else {
      refusedWorkflows.add(index);
      faults.push({ path: `workflows[${index}].on.schedule`, message: tooMany(`these ${count}`) });
    }
  }
  if (schedules.length > room)
    faults.push({ path: `schedules[${room}]`, message: tooMany(`${schedules.length} here`) });
  return { refusedWorkflows, schedules: Math.min(schedules.length, room), faults };
}

function tooMany(what: string): string {
  return `a plugin may have ${MAX_PLUGIN_SCHEDULES} schedules, those of its workflows included, and has more with ${what}; remove some, or start the runs from one schedule with ctx.workflows`;
}
