import { AFTER_ALL_IDS, type AlertFactRow, alertSql, factOf } from '../../../alert-sql.ts';
import type {
  AlertCommit,
  AlertGroupRecord,
  AlertNotificationRecord,
  AlertRecord,
  AlertSettingRecord,
  AlertStore,
} from '../../../ports/index.ts';
import type { PostgresDatabase } from '../../database.ts';
import type { Sql } from '../../named-sql.ts';
import { ORIGINS } from './schema.ts';

const SQL = alertSql(
  (table) => `svc.${table}`,
  (column) => `"${column}"`,
  ORIGINS,
);

/** Thrown in a transaction to roll it back. */
class Conflict extends Error {}

/** Alerts in PostgreSQL. @spec docs/decisions/0258 */
export function postgresAlerts(database: PostgresDatabase): AlertStore {
  const rows = <Row extends object>(text: string, values: object = {}): Promise<Row[]> =>
    database.lists.read((sql) => sql<Row>(text, values));
  const one = async <Row extends object>(text: string, values: object = {}): Promise<Row | undefined> =>
    (await rows<Row>(text, values))[0];
  const alertOf = (text: string, values: object) => rows<AlertRecord>(text, values);
  return {
    settings: () => rows<AlertSettingRecord>(SQL.settings),
    revision: async () => (await one<{ value: number }>(SQL.cursor, { name: 'revision' }))!.value,
    putSetting: (setting, mustExist) =>
      revising(database, mustExist ? SQL.changeSetting : SQL.addSetting, setting),
    removeSetting: (key) => revising(database, SQL.removeSetting, key),
    pruneSilences: async (before) => {
      await database.write((sql) => sql(SQL.pruneSilences, { before }));
    },
    addFactOnce: (key, fact, at) =>
      database.transact(async (sql) => {
        const isNew = (await changed(sql, SQL.addFactKey, { key, at })) === 1;
        if (isNew) await sql(SQL.addFact, fact);
        return isNew;
      }),
    facts: async (limit) => (await rows<AlertFactRow>(SQL.facts, { limit })).map(factOf),
    cursor: async (name) => (await one<{ value: number }>(SQL.cursor, { name }))?.value ?? 0,
    commit: async (changes) => {
      try {
        await database.transact((sql) => commit(sql, changes));
        return true;
      } catch (error) {
        if (error instanceof Conflict || (error as Error).cause instanceof Conflict) return false;
        throw error;
      }
    },
    alert: (id) => one<AlertRecord>(SQL.alert, { id }),
    newestOf: (key) => one<AlertRecord>(SQL.newestOf, key),
    openOf: (rule, limit) => alertOf(SQL.openOf, { ...rule, limit }),
    openIn: (groupKey, limit) => alertOf(SQL.openIn, { groupKey, limit }),
    openBefore: async (kinds, before, limit) => {
      const found = await Promise.all(kinds.map((kind) => alertOf(SQL.openBefore, { kind, before, limit })));
      return found.flat();
    },
    inState: (state, after, limit) => alertOf(SQL.inState, { state, after, limit }),
    list: (filter) => alertOf(SQL.list(filter), { ...filter, before: filter.before ?? AFTER_ALL_IDS }),
    firing: () => rows(SQL.firing),
    group: (key) => one<AlertGroupRecord>(SQL.group, { key }),
    dueGroups: (now, limit) => rows<AlertGroupRecord>(SQL.dueGroups, { now, limit }),
    dueNotifications: (now, limit) => rows<AlertNotificationRecord>(SQL.dueNotifications, { now, limit }),
    notificationsOf: (groupKey, since, limit) =>
      rows<AlertNotificationRecord>(SQL.notificationsOf, { groupKey, since, limit }),
    notificationsTo: (namespaceId, channel, limit) =>
      rows<AlertNotificationRecord>(SQL.notificationsTo, { namespaceId, channel, limit }),
    pending: () => rows(SQL.pending),
    prune: (before, limit) =>
      database.transact(async (sql) => {
        let pruned = 0;
        for (const text of [SQL.pruneAlerts, SQL.pruneNotifications, SQL.pruneGroups, SQL.pruneFactKeys])
          pruned += await changed(sql, text, { before, limit });
        return pruned;
      }),
  };
}

/** Runs a write, and returns the number of changed rows. */
async function changed(sql: Sql, text: string, values: object): Promise<number> {
  const found = await sql(`${text} returning 1 as done`, values);
  return found.length;
}

function revising(database: PostgresDatabase, text: string, values: object): Promise<boolean> {
  return database.transact(async (sql) => {
    const isDone = (await changed(sql, text, values)) === 1;
    if (isDone) await sql(SQL.revised);
    return isDone;
  });
}

async function requireChange(sql: Sql, text: string, values: object, rows = 1): Promise<void> {
  if ((await changed(sql, text, values)) === rows) return;
  throw new Conflict('Another process has changed these alerts.');
}

const DELETE_FACTS =
  'delete from svc.alert_fact where seq in (select value::bigint from json_array_elements_text(:facts::json))';

/** Rows are written in the order of their keys, so that commits of several gateways cannot deadlock. */
async function commit(
  sql: Sql,
  { facts = [], cursor, alerts = [], groups = [], notifications = [] }: AlertCommit,
): Promise<void> {
  if (facts.length > 0)
    await requireChange(sql, DELETE_FACTS, { facts: JSON.stringify(facts) }, facts.length);
  if (cursor) {
    await sql(SQL.addCursor, { name: cursor.name });
    await requireChange(sql, SQL.moveCursor, cursor);
  }
  for (const group of sorted(groups, ({ key }) => key))
    await requireChange(sql, group.version === 1 ? SQL.addGroup : SQL.changeGroup, group);
  for (const alert of sorted(alerts, ({ id }) => id))
    await requireChange(sql, alert.version === 1 ? SQL.addAlert : SQL.changeAlert, alert);
  for (const notification of sorted(notifications, ({ id }) => id))
    await requireChange(
      sql,
      notification.version === 1 ? SQL.addNotification : SQL.changeNotification,
      notification,
    );
}

const sorted = <Row>(found: readonly Row[], keyOf: (row: Row) => string): Row[] =>
  found.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
