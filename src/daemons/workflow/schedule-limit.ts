import type { ManifestV3 } from '../../contracts/index.ts';
import { isRecord } from '../../kit/data/is-record.ts';

/**
 * Maximum number of schedules of a plugin and its workflows. Each plugin change recomputes all schedules, so their
 * number is limited.
 */
export const MAX_PLUGIN_SCHEDULES = 200;

/** Result of applying the schedule limit to the workflows and schedules of a plugin. */
export interface ScheduleLimit {
  /** Indexes of workflows that are rejected because their schedules exceed the limit. */
  refusedWorkflows: ReadonlySet<number>;
  /** Number of leading entries in the manifest's `schedules` that are within the limit. */
  schedules: number;
  faults: Array<{ path: string; message: string }>;
}

/**
 * Applies the schedule limit to a manifest. The schedules of workflows are counted before the `schedules` of the
 * manifest.
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
