import type { AlertFact, AlertFilter } from './ports/alerts.ts';

/** SQL of alerts that both databases understand. `t` returns the name of a table. */
export function alertSql(
  t: (table: string) => string,
  quoted: (column: string) => string,
  /** Expression with the origins of a fact as a JSON array, or null. */
  origins = 'null',
) {
  const as = (column: string, name: string) => `${column} as ${quoted(name)}`;
  const alerts = `select id, version, ${as('namespace_id', 'namespaceId')}, rule, kind, ${as('object_key', 'objectKey')},
    ${as('group_key', 'groupKey')}, state, ${as('first_at', 'firstAt')}, ${as('last_at', 'lastAt')},
    ${as('resolved_at', 'resolvedAt')}, body from ${t('alert')}`;
  const groups = `select key, version, ${as('namespace_id', 'namespaceId')}, rule, ${as('flush_at', 'flushAt')},
    ${as('idle_at', 'idleAt')}, body from ${t('alert_group')}`;
  const notifications = `select id, version, ${as('namespace_id', 'namespaceId')}, ${as('group_key', 'groupKey')}, channel,
    status, ${as('next_at', 'nextAt')}, ${as('created_at', 'createdAt')}, body from ${t('alert_notification')} n`;
  // "0" follows "/". A condition on `id` keeps the database from reading all alerts of the namespace in their order.
  const ofObject = `select id from ${t('alert')} where object_key = :object union all
    select id from ${t('alert')} where object_key > :object || '/' and object_key < :object || '0'`;
  return {
    settings: `select kind, ${as('namespace_id', 'namespaceId')}, name, body, sealed, ${as('created_at', 'createdAt')},
      ${as('updated_at', 'updatedAt')} from ${t('alert_setting')} order by kind, namespace_id, name`,
    addSetting: `insert into ${t('alert_setting')} (kind, namespace_id, name, body, sealed, created_at, updated_at)
      values (:kind, :namespaceId, :name, :body, :sealed, :createdAt, :updatedAt) on conflict do nothing`,
    changeSetting: `update ${t('alert_setting')} set body = :body, sealed = :sealed, updated_at = :updatedAt
      where kind = :kind and namespace_id = :namespaceId and name = :name`,
    removeSetting: `delete from ${t('alert_setting')} where kind = :kind and namespace_id = :namespaceId and name = :name`,
    revised: `update ${t('alert_cursor')} set value = value + 1 where name = 'revision'`,

    addFact: `insert into ${t('alert_fact')} (kind, namespace_id, object_id, body, at)
      values (:kind, :namespaceId, :objectId, :body, :at)`,
    addFactKey: `insert into ${t('alert_cursor')} (name, value) values ('fact ' || :key, :at) on conflict do nothing`,
    facts: `select seq, kind, ${as('namespace_id', 'namespaceId')}, ${as('object_id', 'objectId')}, body, at,
      ${origins} as origins from ${t('alert_fact')} order by seq limit :limit`,
    cursor: `select value from ${t('alert_cursor')} where name = :name`,
    addCursor: `insert into ${t('alert_cursor')} (name, value) values (:name, 0) on conflict do nothing`,
    moveCursor: `update ${t('alert_cursor')} set value = :to where name = :name and value = :from`,

    addAlert: `insert into ${t('alert')} (id, version, namespace_id, rule, kind, object_key, group_key, state, first_at, last_at,
      resolved_at, body) values (:id, :version, :namespaceId, :rule, :kind, :objectKey, :groupKey, :state, :firstAt, :lastAt,
      :resolvedAt, :body) on conflict do nothing`,
    changeAlert: `update ${t('alert')} set version = :version, group_key = :groupKey, state = :state, last_at = :lastAt,
      resolved_at = :resolvedAt, body = :body where id = :id and version = :version - 1`,
    addGroup: `insert into ${t('alert_group')} (key, version, namespace_id, rule, flush_at, idle_at, body)
      values (:key, :version, :namespaceId, :rule, :flushAt, :idleAt, :body) on conflict do nothing`,
    changeGroup: `update ${t('alert_group')} set version = :version, flush_at = :flushAt, idle_at = :idleAt, body = :body
      where key = :key and version = :version - 1`,
    addNotification: `insert into ${t('alert_notification')} (id, version, namespace_id, group_key, channel, status, next_at,
      created_at, body) values (:id, :version, :namespaceId, :groupKey, :channel, :status, :nextAt, :createdAt, :body)
      on conflict do nothing`,
    changeNotification: `update ${t('alert_notification')} set version = :version, status = :status, next_at = :nextAt,
      body = :body where id = :id and version = :version - 1`,

    alert: `${alerts} where id = :id`,
    newestOf: `${alerts} where namespace_id = :namespaceId and rule = :rule and object_key = :objectKey
      order by id desc limit 1`,
    openOf: `${alerts} where namespace_id = :namespaceId and rule = :rule and state <> 'resolved' order by object_key
      limit :limit`,
    openIn: `${alerts} where group_key = :groupKey and state <> 'resolved' order by id limit :limit`,
    openBefore: `${alerts} where kind = :kind and last_at < :before and state <> 'resolved' order by last_at limit :limit`,
    inState: `${alerts} where state = :state and id > :after order by id limit :limit`,
    list: (filter: AlertFilter) =>
      `${alerts} where id < :before ${[
        ...(filter.namespaceId === undefined ? [] : ['and namespace_id = :namespaceId']),
        ...(filter.state === undefined ? [] : ['and state = :state']),
        ...(filter.kind === undefined ? [] : ['and kind = :kind']),
        ...(filter.rule === undefined ? [] : ['and rule = :rule']),
        ...(filter.object === undefined ? [] : [`and id in (${ofObject})`]),
      ].join(' ')} order by id desc limit :limit`,
    firing: `select ${as('namespace_id', 'namespaceId')}, rule, kind, count(*) as alerts from ${t('alert')}
      where state = 'firing' group by namespace_id, rule, kind`,

    group: `${groups} where key = :key`,
    dueGroups: `${groups} where flush_at <= :now order by flush_at limit :limit`,
    dueNotifications: `${notifications} where status = 'pending' and next_at <= :now and not exists (
        select 1 from ${t('alert_notification')} e where e.status = 'pending' and e.group_key = n.group_key
          and e.channel = n.channel and e.id < n.id)
      order by next_at limit :limit`,
    notificationsOf: `${notifications} where group_key = :groupKey and created_at >= :since order by id desc limit :limit`,
    notificationsTo: `${notifications} where namespace_id = :namespaceId and channel = :channel order by id desc limit :limit`,
    pending: `select ${as('namespace_id', 'namespaceId')}, channel, count(*) as pending, min(created_at) as ${quoted('oldestAt')}
      from ${t('alert_notification')} where status = 'pending' group by namespace_id, channel`,

    pruneAlerts: `delete from ${t('alert')} where id in (
      select id from ${t('alert')} where resolved_at < :before limit :limit)`,
    pruneNotifications: `delete from ${t('alert_notification')} where id in (
      select id from ${t('alert_notification')} where status <> 'pending' and created_at < :before limit :limit)`,
    pruneGroups: `delete from ${t('alert_group')} where key in (
      select key from ${t('alert_group')} where idle_at < :before limit :limit)`,
    pruneFactKeys: `delete from ${t('alert_cursor')} where name in (
      select name from ${t('alert_cursor')} where name >= 'fact ' and name < 'fact!' and value < :before limit :limit)`,
    pruneSilences: `delete from ${t('alert_setting')} where kind = 'silence' and updated_at < :before`,
  };
}

/** A fact as it is read from a database. */
export type AlertFactRow = Omit<AlertFact, 'origins'> & { origins: string | null };

export const factOf = ({ origins, ...fact }: AlertFactRow): AlertFact => ({
  ...fact,
  origins: origins === null ? [] : (JSON.parse(origins) as string[]),
});

/** Higher than every id. */
export const AFTER_ALL_IDS = '~';
