import type {
  AlertCommit,
  AlertGroupRecord,
  AlertNotificationRecord,
  AlertRecord,
  AlertStore,
} from '../../../../store/ports/index.ts';
import { type AlertBody, type AlertState, type GroupBody, type GroupState, newGroup } from './grouping.ts';
import type { Rule } from './rule-book.ts';

export function alertOf({ body, ...record }: AlertRecord): AlertState {
  return { ...record, ...(JSON.parse(body) as AlertBody) };
}

/** Returns the row of a changed alert. */
export function alertRecord(alert: AlertState): AlertRecord {
  const { id, namespaceId, rule, kind, objectKey, groupKey, state, firstAt, lastAt, resolvedAt, ...rest } =
    alert;
  const { version, ...body } = rest;
  return {
    ...{ id, version: version + 1, namespaceId, rule, kind, objectKey, groupKey, state },
    ...{ firstAt, lastAt, resolvedAt, body: JSON.stringify(body) },
  };
}

export function groupOf({ body, ...record }: AlertGroupRecord): GroupState {
  return { ...record, ...(JSON.parse(body) as GroupBody) };
}

function groupRecord({
  key,
  version,
  namespaceId,
  rule,
  flushAt,
  idleAt,
  ...body
}: GroupState): AlertGroupRecord {
  return { key, version: version + 1, namespaceId, rule, flushAt, idleAt, body: JSON.stringify(body) };
}

/** Rows that were read for a change, and are committed together if none of them has changed meanwhile. */
export class WorkSet {
  readonly #store: AlertStore;
  readonly #groups = new Map<string, GroupState>();
  readonly #alerts = new Map<string, AlertState>();
  readonly #newest = new Map<string, AlertState | undefined>();
  readonly #changedGroups = new Set<GroupState>();
  readonly #changedAlerts = new Set<AlertState>();
  readonly #notifications: AlertNotificationRecord[] = [];

  constructor(store: AlertStore) {
    this.#store = store;
  }

  /** Returns the newest alert of the object by the rule. */
  async newestOf({ namespaceId, name }: Rule, objectKey: string): Promise<AlertState | undefined> {
    const key = JSON.stringify([namespaceId, name, objectKey]);
    if (!this.#newest.has(key)) {
      const found = await this.#store.newestOf({ namespaceId, rule: name, objectKey });
      this.#newest.set(key, found && this.known(alertOf(found)));
    }
    return this.#newest.get(key);
  }

  /** Returns the copy of the alert that this set changes. */
  known(alert: AlertState): AlertState {
    const known = this.#alerts.get(alert.id) ?? alert;
    this.#alerts.set(alert.id, known);
    return known;
  }

  async group(key: string): Promise<GroupState | undefined> {
    const known = this.#groups.get(key);
    if (known) return known;
    const found = await this.#store.group(key);
    return found && this.use(groupOf(found));
  }

  async groupFor(key: string, rule: Rule): Promise<GroupState> {
    return (await this.group(key)) ?? this.use(newGroup(key, rule));
  }

  use(group: GroupState): GroupState {
    this.#groups.set(group.key, group);
    return group;
  }

  changeGroup(group: GroupState | undefined): void {
    if (group) this.#changedGroups.add(group);
  }

  changeAlert(alert: AlertState): void {
    this.#changedAlerts.add(alert);
    this.#newest.set(JSON.stringify([alert.namespaceId, alert.rule, alert.objectKey]), alert);
  }

  addNotification(notification: AlertNotificationRecord): void {
    this.#notifications.push(notification);
  }

  get isEmpty(): boolean {
    return this.#changedAlerts.size + this.#changedGroups.size + this.#notifications.length === 0;
  }

  /** Returns false if another process has changed a row or handled a fact. Nothing is written then. */
  async commit(extra: Pick<AlertCommit, 'facts' | 'cursor'> = {}): Promise<boolean> {
    if (this.isEmpty && !extra.cursor && (extra.facts ?? []).length === 0) return true;
    return this.#store.commit({
      ...extra,
      alerts: [...this.#changedAlerts].map(alertRecord),
      groups: [...this.#changedGroups].map(groupRecord),
      notifications: this.#notifications,
    });
  }
}
