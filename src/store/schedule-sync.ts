import { days } from '../kit/time/duration.ts';
import type { ScheduleOwners, ScheduleRecord } from './ports/index.ts';

export type SchedulePlan = Omit<ScheduleRecord, 'paused' | 'lastAt' | 'lastRunId'>;

type PlanKey = Pick<ScheduleRecord, 'id' | 'workflowId' | 'cron' | 'timezone'>;

/**
 * Changes that align the stored schedules with the loaded workflows and plugins. The changes must be applied in the
 * order of the fields.
 */
export interface ScheduleChanges {
  /** Schedules whose id changed. A renamed schedule keeps its state. */
  renamed: Array<{ from: string; to: string }>;
  /** Ids of schedules that their loaded workflow or plugin no longer declares. */
  removed: string[];
  /** Ids of schedules whose workflow or plugin is not loaded, or whose nodes are all down. */
  deactivated: string[];
}

/** Time after which a schedule is deleted if its workflow or plugin stays unloaded. */
export const MAX_ABSENT_MS = days(30);

/**
 * Compares stored schedules with the schedules of the loaded workflows and plugins. `elsewhere` contains the ids that
 * other nodes have registered. The value of an id is true if one of these nodes is live.
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
  // A schedule of another node is deactivated instead of removed. A paused schedule thus stays paused when the node
  // registers the schedule again.
  const isRemoved = (row: PlanKey): boolean => isLoaded(row, owners) && !elsewhere.has(row.id);
  return {
    renamed,
    removed: left.filter((row) => isRemoved(row)).map(({ id }) => id),
    deactivated: left.filter((row) => !isRemoved(row)).map(({ id }) => id),
  };
}

/**
 * Returns whether two schedules have the same owner, workflow, cron expression and time zone. Two such schedules with
 * different ids count as one renamed schedule.
 */
function isSamePlan(a: PlanKey, b: PlanKey): boolean {
  const hasSameOwner = ownerOf(a.id) === ownerOf(b.id) && a.workflowId === b.workflowId;
  return hasSameOwner && a.cron === b.cron && a.timezone === b.timezone;
}

/**
 * Returns whether the owner of a schedule is loaded. The owner is a workflow if the first part of `id` equals
 * `workflowId`, and otherwise a plugin.
 */
function isLoaded({ id, workflowId }: PlanKey, { workflows, plugins }: ScheduleOwners): boolean {
  const owner = ownerOf(id);
  return owner === workflowId ? workflows.has(owner) : plugins.has(owner);
}

const ownerOf = (id: string): string => id.slice(0, id.lastIndexOf(':'));
