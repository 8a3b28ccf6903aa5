import type { ScheduleOwners, ScheduleRecord } from './ports/index.ts';

export type SchedulePlan = Omit<ScheduleRecord, 'paused' | 'lastAt' | 'lastRunId'>;

type PlanKey = Pick<ScheduleRecord, 'id' | 'workflowId' | 'cron' | 'timezone'>;

/** Changes that make the stored schedules those of the loaded owners, in this order. */
export interface ScheduleChanges {
  /** A schedule whose id changed keeps its state. */
  renamed: Array<{ from: string; to: string }>;
  /** Ids of schedules that their owner no longer has. */
  removed: string[];
  /** Ids of schedules whose owner is not loaded. */
  deactivated: string[];
}

/** Compares stored schedules with those of the loaded owners. */
export function scheduleChanges(
  stored: readonly PlanKey[],
  schedules: readonly SchedulePlan[],
  owners: ScheduleOwners,
): ScheduleChanges {
  const ids = new Set(schedules.map(({ id }) => id));
  const storedIds = new Set(stored.map(({ id }) => id));
  const left = stored.filter(({ id }) => !ids.has(id));
  const renamed: ScheduleChanges['renamed'] = [];
  for (const schedule of schedules) {
    if (storedIds.has(schedule.id)) continue;
    const index = left.findIndex((row) => isSamePlan(row, schedule));
    if (index === -1) continue;
    renamed.push({ from: left[index]!.id, to: schedule.id });
    left.splice(index, 1);
  }
  return {
    renamed,
    removed: left.filter((row) => isLoaded(row, owners)).map(({ id }) => id),
    deactivated: left.filter((row) => !isLoaded(row, owners)).map(({ id }) => id),
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
 * The id of a workflow's own schedule starts with the workflow's id; other schedules belong to a plugin's manifest.
 */
function isLoaded({ id, workflowId }: PlanKey, { workflows, plugins }: ScheduleOwners): boolean {
  const owner = ownerOf(id);
  return owner === workflowId ? workflows.has(owner) : plugins.has(owner);
}

const ownerOf = (id: string): string => id.slice(0, id.lastIndexOf(':'));
