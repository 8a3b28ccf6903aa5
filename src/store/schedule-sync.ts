import { days } from '../kit/time/duration.ts';
import type { ScheduleOwners, ScheduleRecord } from './ports/index.ts';

export type SchedulePlan = Omit<ScheduleRecord, 'paused' | 'lastAt' | 'lastRunId'>;

type PlanKey = Pick<ScheduleRecord, 'id' | 'workflowId' | 'cron' | 'timezone'>;

/**
 * Changes that bring the stored schedules in line with those of the loaded owners. They must be applied in this order.
 */
export interface ScheduleChanges {
  /** A schedule whose id changed keeps its state. */
  renamed: Array<{ from: string; to: string }>;
  /** Ids of schedules that their owner no longer has. */
  removed: string[];
  /** Ids of schedules whose owner is not loaded, or that were registered by a node that is down. */
  deactivated: string[];
}

/** Age at which a schedule of an absent owner is deleted. */
export const MAX_ABSENT_MS = days(30);

/**
 * Compares stored schedules with those of the loaded owners. `elsewhere` contains the ids that other nodes have
 * registered. Its value is true if the node is live.
 */
export function scheduleChanges(
  stored: readonly PlanKey[],
  schedules: readonly SchedulePlan[],
  { owners, elsewhere }: { owners: ScheduleOwners; elsewhere: ReadonlyMap<string, boolean> },
): ScheduleChanges {
  const ids = new Set(schedules.map(({ id }) => id));
  const storedIds = new Set(stored.map(({ id }) => id));
  const left = stored.filter(({ id }) => !ids.has(id) && elsewhere.get(id) !== true);
  const renamed: ScheduleChanges['renamed'] = [];
  for (const schedule of schedules) {
    if (storedIds.has(schedule.id)) continue;
    const index = left.findIndex((row) => isSamePlan(row, schedule));
    if (index === -1) continue;
    renamed.push({ from: left[index]!.id, to: schedule.id });
    left.splice(index, 1);
  }
  // A node that is down may register the schedule again later. The schedule then keeps its pause.
  const isRemoved = (row: PlanKey): boolean => isLoaded(row, owners) && !elsewhere.has(row.id);
  return {
    renamed,
    removed: left.filter((row) => isRemoved(row)).map(({ id }) => id),
    deactivated: left.filter((row) => !isRemoved(row)).map(({ id }) => id),
  };
}

/**
 * Returns true when two ids denote the same schedule. The end of an id is either a declared name or the position of the
 * schedule.
 */
function isSamePlan(a: PlanKey, b: PlanKey): boolean {
  const hasSameOwner = ownerOf(a.id) === ownerOf(b.id) && a.workflowId === b.workflowId;
  return hasSameOwner && a.cron === b.cron && a.timezone === b.timezone;
}

/**
 * Returns true when the owner of a schedule is loaded. The owner is the workflow if the schedule's id starts with the
 * workflow's id, otherwise a plugin.
 */
function isLoaded({ id, workflowId }: PlanKey, { workflows, plugins }: ScheduleOwners): boolean {
  const owner = ownerOf(id);
  return owner === workflowId ? workflows.has(owner) : plugins.has(owner);
}

const ownerOf = (id: string): string => id.slice(0, id.lastIndexOf(':'));
