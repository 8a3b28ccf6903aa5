import type {
  AlertKind,
  AlertNotification,
  AlertObject,
  AlertSeverity,
} from '../../../../contracts/index.ts';
import type { AlertRecord } from '../../../../store/ports/index.ts';
import { CONDITION_KINDS, type Occurrence, RUN_FACTS } from './occurrence.ts';
import type { Rule } from './rule-book.ts';

/** Parts of a stored alert that the store does not read. */
export interface AlertBody {
  severity: AlertSeverity;
  object: AlertObject;
  title: string;
  message: string;
  path: string | null;
  count: number;
  /** Number of the alert within its group. Alerts above `GroupBody.notified` were not sent yet. */
  n: number;
  fact: Occurrence['fact'];
  acknowledgedAt: number | null;
  acknowledgedBy: string | null;
  silenceId: string | null;
}

export type AlertState = Omit<AlertRecord, 'body' | 'version'> & AlertBody & { version: number };

export interface GroupBody {
  /** Number of the newest alert. */
  last: number;
  /** Number of the newest alert that was sent. */
  notified: number;
  /** Firing alerts, without silenced ones. */
  open: number;
  lastSentAt: number | null;
  /** Alerts that were sent, and have ended since. */
  resolved: string[];
  /** Occurrences beyond `MAX_OPEN_ALERTS` since the last notification. */
  uncounted: number;
  /** Names the incident at the receiver while alerts of the group fire. */
  incident: string | null;
}

export interface GroupState extends GroupBody {
  key: string;
  namespaceId: string;
  rule: string;
  flushAt: number | null;
  idleAt: number | null;
  version: number;
}

/** Beyond this number of open alerts in a group, occurrences are only counted. */
export const MAX_OPEN_ALERTS = 1000;

export function newGroup(key: string, { namespaceId, name }: Rule): GroupState {
  return {
    ...{ key, namespaceId, rule: name, flushAt: null, idleAt: null, version: 0 },
    ...{ last: 0, notified: 0, open: 0, lastSentAt: null, resolved: [], uncounted: 0, incident: null },
  };
}

/** Sets the time of the next notification. `groupWaitMs` is also the least time between two notifications. */
function schedule(group: GroupState, { settings: { groupWaitMs } }: Rule, now: number): void {
  const earliest =
    group.lastSentAt === null ? now + groupWaitMs : Math.max(now, group.lastSentAt + groupWaitMs);
  group.flushAt = group.flushAt === null ? earliest : Math.min(group.flushAt, earliest);
}

export interface Raise {
  rule: Rule;
  group: GroupState;
  occurrence: Occurrence;
  /** Id of a silence that matches. */
  silenceId: string | null;
  now: number;
  newId: () => string;
}

/** Opens an alert in its group. Returns undefined if the group is full, so that the occurrence is only counted. */
export function openAlert({ rule, group, occurrence, silenceId, now, newId }: Raise): AlertState | undefined {
  const { kind, object, title, message, path, at, fact } = occurrence;
  if (group.open >= MAX_OPEN_ALERTS) {
    group.uncounted++;
    schedule(group, rule, now);
    return undefined;
  }
  const alert: AlertState = {
    ...{ id: newId(), version: 0, namespaceId: rule.namespaceId, rule: rule.name, kind },
    ...{ objectKey: object.id, groupKey: group.key, state: silenceId === null ? 'firing' : 'silenced' },
    ...{ firstAt: at, lastAt: Math.max(at, now), resolvedAt: null, severity: rule.settings.severity },
    ...{ object, title, message, path, count: 1, n: 0, fact },
    ...{ acknowledgedAt: null, acknowledgedBy: null, silenceId },
  };
  if (silenceId === null) fire(alert, group, rule, now);
  return alert;
}

/** Counts an occurrence of an object whose alert is open. */
export function repeatAlert(alert: AlertState, { title, message, fact }: Occurrence, now: number): void {
  Object.assign(alert, { title, message, lastAt: now });
  // A condition is found again at each evaluation, so only facts count.
  if (fact === null) return;
  alert.fact = fact;
  alert.count++;
}

/**
 * Returns whether the alert has already counted the fact of an occurrence. Facts of the own store are deleted when they
 * are handled, so only those of the workflow service can be read twice. Their numbers have the order of their commits.
 */
export function hasCounted(alert: AlertState | undefined, fact: Occurrence['fact']): boolean {
  return fact?.source === RUN_FACTS && alert?.fact?.source === RUN_FACTS && fact.seq <= alert.fact.seq;
}

/** Lets an alert fire as the newest one of its group. */
export function fire(alert: AlertState, group: GroupState, rule: Rule, now: number): void {
  Object.assign(alert, { state: 'firing', silenceId: null, n: ++group.last });
  group.open++;
  group.idleAt = null;
  schedule(group, rule, now);
}

export function silence(alert: AlertState, group: GroupState, silenceId: string): void {
  Object.assign(alert, { state: 'silenced', silenceId });
  group.open = Math.max(0, group.open - 1);
}

/** Ends an alert. The end of an alert that was sent is sent too, unless `isQuiet`. */
export function resolveAlert(
  alert: AlertState,
  group: GroupState | undefined,
  { rule, now, isQuiet = false }: { rule: Rule | undefined; now: number; isQuiet?: boolean },
): void {
  const wasFiring = alert.state === 'firing';
  Object.assign(alert, { state: 'resolved', resolvedAt: now, silenceId: null });
  if (!group || !wasFiring) return;
  group.open = Math.max(0, group.open - 1);
  if (group.open === 0) group.idleAt = now;
  if (!isQuiet && rule?.settings.sendResolved && alert.n <= group.notified) {
    if (group.resolved.length < MAX_OPEN_ALERTS) group.resolved.push(alert.id);
    schedule(group, rule, now);
  }
  // Nothing more is sent about the incident. A later alert must not be hidden in it.
  if (group.open === 0 && group.resolved.length === 0) group.incident = null;
}

export interface Flush {
  reason: AlertNotification['reason'];
  /** Alerts of the notification: new ones first, or those that ended. */
  alerts: AlertState[];
  firing: number;
  uncounted: number;
  incident: string;
}

/**
 * Decides what a due group sends, and updates the group. Returns undefined if nothing is left to send. `firing` are the
 * firing alerts of the group, and `ended` the alerts of `group.resolved`.
 */
export function flushGroup(
  group: GroupState,
  rule: Rule | undefined,
  { firing, ended, now }: { firing: readonly AlertState[]; ended: readonly AlertState[]; now: number },
  newIncident: () => string,
): Flush | undefined {
  group.flushAt = null;
  group.idleAt = group.open === 0 ? now : null;
  if (!rule?.settings.enabled) {
    Object.assign(group, { resolved: [], uncounted: 0, notified: group.last });
    return undefined;
  }
  const found = contentOf(group, rule, { firing, ended, now });
  if (found) {
    group.incident ??= newIncident();
    const flush = { ...found, firing: firing.length, uncounted: group.uncounted, incident: group.incident };
    Object.assign(group, { notified: group.last, lastSentAt: now, resolved: [], uncounted: 0 });
    if (group.open === 0) group.incident = null;
    repeatLater(group, rule, firing);
    return flush;
  }
  repeatLater(group, rule, firing);
  return undefined;
}

function contentOf(
  group: GroupState,
  rule: Rule,
  { firing, ended, now }: { firing: readonly AlertState[]; ended: readonly AlertState[]; now: number },
): Pick<Flush, 'reason' | 'alerts'> | undefined {
  const fresh = firing.filter(({ n }) => n > group.notified);
  const others = firing.filter(({ n }) => n <= group.notified);
  if (fresh.length > 0 || group.uncounted > 0) return { reason: 'firing', alerts: [...fresh, ...others] };
  if (ended.length > 0) return { reason: 'resolved', alerts: [...ended] };
  const repeatAt = repeatTime(group, rule, firing);
  return repeatAt !== null && repeatAt <= now ? { reason: 'repeat', alerts: [...firing] } : undefined;
}

/** Events have happened once, so only conditions are repeated. */
function repeatTime(
  { lastSentAt }: GroupState,
  { settings }: Rule,
  firing: readonly AlertState[],
): number | null {
  const { repeatIntervalMs, kind } = settings;
  const repeats = firing.some(({ acknowledgedAt }) => acknowledgedAt === null) && isCondition(kind);
  return repeats && repeatIntervalMs !== null && lastSentAt !== null ? lastSentAt + repeatIntervalMs : null;
}

function repeatLater(group: GroupState, rule: Rule, firing: readonly AlertState[]): void {
  const at = repeatTime(group, rule, firing);
  if (at !== null) group.flushAt = group.flushAt === null ? at : Math.min(group.flushAt, at);
}

const isCondition = (kind: AlertKind): boolean => CONDITION_KINDS.includes(kind);
