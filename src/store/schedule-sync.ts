import { days } from '../kit/time/duration.ts';
import type { ScheduleNode, ScheduleOwners, ScheduleRecord, ScheduleSource } from './ports/index.ts';

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

/** Schedule that a node has registered. */
export interface ScheduleRegistration extends Pick<ScheduleNode, 'instance'> {
  id: string;
  /** Digest of the node's schedules. Null for nodes of a version that stored no digest. */
  release: string | null;
  /** Grows with each release. */
  releaseOrder: number;
  /** Whether a live process of the node has registered the schedule. */
  isLive: boolean;
}

/** What a node must know about other nodes to store its schedules. */
export interface ScheduleView {
  /** Ids that other nodes have registered. The value of an id is true if one of these nodes is live. */
  elsewhere: ReadonlyMap<string, boolean>;
  /** Ids of schedules whose plan is that of a newer release, which a live node runs. */
  newer: ReadonlySet<string>;
  releaseOrder: number;
}

/**
 * Compares a node's release with the registered ones. An unknown release is the newest. A known release keeps its place,
 * so that a restarted node of an older release does not undo the plans of a newer one.
 */
export function viewSchedules(
  registered: readonly ScheduleRegistration[],
  { instance, release }: Pick<ScheduleSource, 'instance' | 'release'>,
): ScheduleView {
  const orders = registered.map(({ releaseOrder }) => releaseOrder);
  const known = registered.find((each) => each.release === release);
  const releaseOrder = known?.releaseOrder ?? Math.max(0, ...orders) + 1;
  const others = registered.filter((each) => each.instance !== instance);
  const elsewhere = new Map<string, boolean>();
  for (const { id, isLive } of others) elsewhere.set(id, isLive || elsewhere.get(id) === true);
  const newer = others.filter((each) => each.isLive && each.releaseOrder > releaseOrder);
  return { elsewhere, newer: new Set(newer.map(({ id }) => id)), releaseOrder };
}

/** View of a node whose store no other node uses. */
export const ALONE: ScheduleView = { elsewhere: new Map(), newer: new Set(), releaseOrder: 0 };

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
