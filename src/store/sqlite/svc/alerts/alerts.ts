import { AFTER_ALL_IDS, type AlertFactRow, alertSql, factOf } from '../../../alert-sql.ts';
import type {
  AlertCommit,
  AlertGroupRecord,
  AlertNotificationRecord,
  AlertRecord,
  AlertSettingRecord,
  AlertStore,
} from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import { DELIVERY_ORIGINS } from './schema.ts';

const SQL = alertSql(
  (table) => table,
  (column) => column,
  DELIVERY_ORIGINS,
);
const MISSING = 'select count(*) from json_each(:facts) where value not in (select seq from alert_fact)';
const DELETE_FACTS = 'delete from alert_fact where seq in (select value from json_each(:facts))';

/** Thrown in a transaction to roll it back. */
class Conflict extends Error {}

/** Alerts in `svc.db`. @spec docs/decisions/0258 */
export function sqliteAlerts(db: Database): AlertStore {
  const rows = <Row>(text: string) => {
    const statement = db.prepare<[object], Row>(text);
    return (values: object) => db.read(() => statement.all(values));
  };
  const one = <Row>(text: string) => {
    const statement = db.prepare<[object], Row>(text);
    return (values: object) => db.read(() => statement.get(values));
  };
  const run = (text: string) => {
    const statement = db.prepare<[object]>(text);
    return (values: object): number => statement.run(values).changes;
  };
  const settings = rows<AlertSettingRecord>(SQL.settings);
  const [addSetting, changeSetting, removeSetting] = [
    run(SQL.addSetting),
    run(SQL.changeSetting),
    run(SQL.removeSetting),
  ];
  const [revised, pruneSilences] = [run(SQL.revised), run(SQL.pruneSilences)];
  const [addFact, addFactKey] = [run(SQL.addFact), run(SQL.addFactKey)];
  const prunes = [SQL.pruneAlerts, SQL.pruneNotifications, SQL.pruneGroups, SQL.pruneFactKeys].map(run);
  const cursor = one<{ value: number }>(SQL.cursor);
  const facts = rows<AlertFactRow>(SQL.facts);
  const openBefore = rows<AlertRecord>(SQL.openBefore);
  const [alert, newestOf] = [one<AlertRecord>(SQL.alert), one<AlertRecord>(SQL.newestOf)];
  const [openOf, openIn, inState] = [
    rows<AlertRecord>(SQL.openOf),
    rows<AlertRecord>(SQL.openIn),
    rows<AlertRecord>(SQL.inState),
  ];
  const group = one<AlertGroupRecord>(SQL.group);
  const dueGroups = rows<AlertGroupRecord>(SQL.dueGroups);
  const dueNotifications = rows<AlertNotificationRecord>(SQL.dueNotifications);
  const notificationsOf = rows<AlertNotificationRecord>(SQL.notificationsOf);
  const notificationsTo = rows<AlertNotificationRecord>(SQL.notificationsTo);
  const firing = rows<Awaited<ReturnType<AlertStore['firing']>>[number]>(SQL.firing);
  const pending = rows<Awaited<ReturnType<AlertStore['pending']>>[number]>(SQL.pending);
  const commit = committer(db);
  return {
    settings: () => settings({}),
    revision: async () => (await cursor({ name: 'revision' }))!.value,
    putSetting: (setting, mustExist) =>
      db.write(() => {
        const isDone = (mustExist ? changeSetting : addSetting)(setting) === 1;
        if (isDone) revised({});
        return isDone;
      }),
    removeSetting: (key) =>
      db.write(() => {
        const isDone = removeSetting(key) === 1;
        if (isDone) revised({});
        return isDone;
      }),
    pruneSilences: (before) => db.write(() => void pruneSilences({ before })),
    addFactOnce: (key, fact, at) =>
      db.write(() => {
        const isNew = addFactKey({ key, at }) === 1;
        if (isNew) addFact(fact);
        return isNew;
      }),
    facts: async (limit) => (await facts({ limit })).map(factOf),
    cursor: async (name) => (await cursor({ name }))?.value ?? 0,
    commit: async (changes) => {
      try {
        await db.write(() => commit(changes));
        return true;
      } catch (error) {
        if (error instanceof Conflict) return false;
        throw error;
      }
    },
    alert: (id) => alert({ id }),
    newestOf: (key) => newestOf(key),
    openOf: (rule, limit) => openOf({ ...rule, limit }),
    openIn: (groupKey, limit) => openIn({ groupKey, limit }),
    openBefore: async (kinds, before, limit) => {
      const found = await Promise.all(kinds.map((kind) => openBefore({ kind, before, limit })));
      return found.flat();
    },
    inState: (state, after, limit) => inState({ state, after, limit }),
    list: (filter) =>
      db.read(() =>
        db
          .prepare<[object], AlertRecord>(SQL.list(filter))
          .all({ ...filter, before: filter.before ?? AFTER_ALL_IDS }),
      ),
    firing: () => firing({}),
    group: (key) => group({ key }),
    dueGroups: (now, limit) => dueGroups({ now, limit }),
    dueNotifications: (now, limit) => dueNotifications({ now, limit }),
    notificationsOf: (groupKey, since, limit) => notificationsOf({ groupKey, since, limit }),
    notificationsTo: (namespaceId, channel, limit) => notificationsTo({ namespaceId, channel, limit }),
    pending: () => pending({}),
    prune: (before, limit) =>
      db.write(() => prunes.reduce((pruned, prune) => pruned + prune({ before, limit }), 0)),
  };
}

/** Returns the function that writes changes within a transaction. Throws `Conflict` before the first write. */
function committer(db: Database): (changes: AlertCommit) => void {
  const missing = db.prepare<[object], number>(MISSING).pluck();
  const versionOf = {
    alert: db.prepare<[string], number>('select version from alert where id = ?').pluck(),
    group: db.prepare<[string], number>('select version from alert_group where key = ?').pluck(),
    notification: db.prepare<[string], number>('select version from alert_notification where id = ?').pluck(),
  };
  const cursor = db.prepare<[object], number>(SQL.cursor).pluck();
  const open = db
    .prepare<[object], string>(
      `select id from alert where namespace_id = :namespaceId and rule = :rule and object_key = :objectKey and state <> 'resolved'`,
    )
    .pluck();
  const run = (text: string) => {
    const statement = db.prepare<[object]>(text);
    return (values: object): void => void statement.run(values);
  };
  const deleteFacts = run(DELETE_FACTS);
  const [addCursor, moveCursor] = [run(SQL.addCursor), run(SQL.moveCursor)];
  const writes = {
    alert: [run(SQL.addAlert), run(SQL.changeAlert)],
    group: [run(SQL.addGroup), run(SQL.changeGroup)],
    notification: [run(SQL.addNotification), run(SQL.changeNotification)],
  } as const;

  function check({ facts, cursor: moved, alerts = [], groups = [], notifications = [] }: AlertCommit): void {
    const isStale =
      (facts !== undefined && facts.length > 0 && missing.get({ facts: JSON.stringify(facts) })! > 0) ||
      (moved !== undefined && (cursor.get({ name: moved.name }) ?? 0) !== moved.from) ||
      alerts.some(({ id, version }) => (versionOf.alert.get(id) ?? 0) !== version - 1) ||
      alerts.some(
        (alert) => alert.version === 1 && alert.state !== 'resolved' && open.get(alert) !== undefined,
      ) ||
      groups.some(({ key, version }) => (versionOf.group.get(key) ?? 0) !== version - 1) ||
      notifications.some(({ id, version }) => (versionOf.notification.get(id) ?? 0) !== version - 1);
    if (isStale) throw new Conflict('Another process has changed these alerts.');
  }

  return (changes) => {
    check(changes);
    const { facts = [], cursor: moved, alerts = [], groups = [], notifications = [] } = changes;
    if (facts.length > 0) deleteFacts({ facts: JSON.stringify(facts) });
    if (moved) {
      addCursor({ name: moved.name });
      moveCursor(moved);
    }
    const write = (kind: keyof typeof writes, row: { version: number }) =>
      writes[kind][row.version === 1 ? 0 : 1](row);
    for (const alert of alerts) write('alert', alert);
    for (const group of groups) write('group', group);
    for (const notification of notifications) write('notification', notification);
  };
}
