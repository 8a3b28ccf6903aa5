import type { AlertKind, AlertState } from '../../contracts/index.ts';

/** Something that happened, written in the transaction that made it happen. @spec docs/decisions/0258 */
export interface NewAlertFact {
  /** An alert kind, or a kind that ends alerts, such as `endpoint.enabled`. */
  kind: string;
  /** Namespace of the object, or null for the platform. */
  namespaceId: string | null;
  objectId: string;
  /** Labels and numbers of the object as JSON. */
  body: string;
  /** Epoch ms. */
  at: number;
}

export interface AlertFact extends NewAlertFact {
  /** Number of the fact. Later facts of one object have higher numbers. */
  seq: number;
  /** Ids of the deliveries or runs that the object repeats, nearest first. */
  origins: string[];
}

export type AlertSettingKind = 'rule' | 'channel' | 'silence';

/** Identifies a rule, channel or silence. The namespace `*` is that of operators. */
export interface AlertSettingKey {
  kind: AlertSettingKind;
  namespaceId: string;
  name: string;
}

export interface AlertSettingRecord extends AlertSettingKey {
  /** JSON, which the gateway defines. */
  body: string;
  /** The sealed secret of a channel. */
  sealed: string | null;
  createdAt: number;
  updatedAt: number;
}

/** A row that is written only if its version is the one that was read. New rows have the version 1. */
interface Versioned {
  version: number;
}

export interface AlertRecord extends Versioned {
  /** Ids of later alerts are higher. */
  id: string;
  /** Namespace of the rule. */
  namespaceId: string;
  rule: string;
  kind: AlertKind;
  /** Id of the object, unique within the kind. */
  objectKey: string;
  groupKey: string;
  /** A rule has at most one alert of an object that is not resolved. */
  state: AlertState;
  firstAt: number;
  lastAt: number;
  resolvedAt: number | null;
  /** JSON, which the gateway defines. */
  body: string;
}

export interface AlertGroupRecord extends Versioned {
  key: string;
  namespaceId: string;
  rule: string;
  /** Time at which the next notification is due, or null. */
  flushAt: number | null;
  /** Time since which nothing fires, after which the group is pruned. */
  idleAt: number | null;
  body: string;
}

export type AlertNotificationStatus = 'pending' | 'sent' | 'dead' | 'dropped';

export interface AlertNotificationRecord extends Versioned {
  /** Ids of later notifications are higher. */
  id: string;
  namespaceId: string;
  groupKey: string;
  channel: string;
  status: AlertNotificationStatus;
  /** Time of the next attempt, or the end of the attempt in flight. */
  nextAt: number | null;
  createdAt: number;
  body: string;
}

/** Changes that are committed together, or not at all. */
export interface AlertCommit {
  /** Handled facts, which are deleted. A missing one means that another process has handled it. */
  facts?: readonly number[];
  /** Position in the facts of another store. `from` must be the stored one. */
  cursor?: { name: string; from: number; to: number } | undefined;
  alerts?: readonly AlertRecord[];
  groups?: readonly AlertGroupRecord[];
  notifications?: readonly AlertNotificationRecord[];
}

export interface AlertFilter {
  namespaceId?: string | undefined;
  state?: AlertState | undefined;
  kind?: AlertKind | undefined;
  rule?: string | undefined;
  /** Id of an object, or of one whose id begins with it and a slash. */
  object?: string | undefined;
  /** Only alerts with lower ids. */
  before?: string | undefined;
  limit: number;
}

export interface AlertObjectKey {
  namespaceId: string;
  rule: string;
  objectKey: string;
}

export interface AlertStore {
  settings(): Promise<AlertSettingRecord[]>;
  /** Returns a number that changes with every change of the settings. */
  revision(): Promise<number>;
  /** Returns false if the setting exists, or with `mustExist` if it does not. */
  putSetting(setting: AlertSettingRecord, mustExist: boolean): Promise<boolean>;
  removeSetting(key: AlertSettingKey): Promise<boolean>;
  /** Deletes silences whose `updatedAt` is earlier. That of a silence is its end. */
  pruneSilences(before: number): Promise<void>;

  /** Adds a fact unless one was added with the same key within the retention. `at` is the current time. */
  addFactOnce(key: string, fact: NewAlertFact, at: number): Promise<boolean>;
  /** Returns the oldest facts. */
  facts(limit: number): Promise<AlertFact[]>;
  cursor(name: string): Promise<number>;
  /** Commits the changes. Returns false without a change if a precondition does not hold. */
  commit(changes: AlertCommit): Promise<boolean>;

  alert(id: string): Promise<AlertRecord | undefined>;
  /** Returns the newest alert of the object by the rule. */
  newestOf(key: AlertObjectKey): Promise<AlertRecord | undefined>;
  /** Returns alerts of the rule that are not resolved, oldest first. */
  openOf(rule: { namespaceId: string; rule: string }, limit: number): Promise<AlertRecord[]>;
  /** Returns alerts of the group that are not resolved, oldest first. */
  openIn(groupKey: string, limit: number): Promise<AlertRecord[]>;
  /** Returns alerts that are not resolved, and whose last fact is older than the time. */
  openBefore(kinds: readonly AlertKind[], lastBefore: number, limit: number): Promise<AlertRecord[]>;
  inState(state: AlertState, after: string, limit: number): Promise<AlertRecord[]>;
  list(filter: AlertFilter): Promise<AlertRecord[]>;
  /** Returns the number of firing alerts by rule. */
  firing(): Promise<Array<{ namespaceId: string; rule: string; kind: AlertKind; alerts: number }>>;

  group(key: string): Promise<AlertGroupRecord | undefined>;
  dueGroups(now: number, limit: number): Promise<AlertGroupRecord[]>;

  /** Returns pending notifications that are due. A later one of the same group and channel waits for the earlier one. */
  dueNotifications(now: number, limit: number): Promise<AlertNotificationRecord[]>;
  /** Returns the newest notifications of a group. */
  notificationsOf(groupKey: string, since: number, limit: number): Promise<AlertNotificationRecord[]>;
  /** Returns the newest notifications of a channel. */
  notificationsTo(namespaceId: string, channel: string, limit: number): Promise<AlertNotificationRecord[]>;
  pending(): Promise<Array<{ namespaceId: string; channel: string; pending: number; oldestAt: number }>>;
  /** Deletes resolved alerts, ended notifications, idle groups and keys of facts. Returns the number of deleted rows. */
  prune(before: number, limit: number): Promise<number>;
}
