import { changedEndpoint, type EndpointRow, endpointOf, endpointRow } from '../../../message-rows.ts';
import type { OutgoingEndpointStore, StoredEndpoint } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { AddToFeed } from '../feed.ts';

const FIELDS = {
  id: 'id',
  namespaceId: 'namespace_id',
  application: 'application',
  url: 'url',
  types: 'types',
  description: 'description',
  rateLimitPerSecond: 'rate_limit_per_second',
  headers: 'headers',
  secret: 'secret',
  previousSecret: 'previous_secret',
  previousSecretExpiresAt: 'previous_secret_expires_at',
  ordered: 'ordered',
  publicOnly: 'public_only',
  retrySchedule: 'retry_schedule',
  timeoutMs: 'timeout_ms',
  disabledReason: 'disabled_reason',
  disabledAt: 'disabled_at',
  failingSince: 'failing_since',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
} as const satisfies Record<keyof StoredEndpoint, string>;

const COLUMNS = Object.entries(FIELDS)
  .map(([field, column]) => `${column} as ${field}`)
  .join(', ');
const SET = Object.entries(FIELDS)
  .filter(([field]) => field !== 'id')
  .map(([field, column]) => `${column} = :${field}`)
  .join(', ');

/** Endpoints that receive messages, in `svc.db`. @spec docs/messages.md */
export function sqliteOutgoingEndpoints(db: Database, addToFeed: AddToFeed): OutgoingEndpointStore {
  const sql = statements(db);
  const find = (namespaceId: string, id: string): StoredEndpoint | undefined => {
    const row = sql.find.get({ id });
    return row?.namespaceId === namespaceId ? endpointOf(row) : undefined;
  };
  const store = (endpoint: StoredEndpoint): StoredEndpoint => {
    sql.store.run(endpointRow(endpoint));
    addToFeed('endpoints', endpoint.id);
    return endpoint;
  };
  return {
    all: () => db.read(() => sql.all.all().map(endpointOf)),
    read: (ids) => db.read(() => sql.read.all(JSON.stringify(ids)).map(endpointOf)),
    list: ({ namespaceId, application, disabled, before = '~', limit }) =>
      db.read(() => {
        const values = { namespaceId, application: application ?? null, before, limit };
        return sql.list
          .all({ ...values, disabled: disabled === undefined ? null : Number(disabled) })
          .map(endpointOf);
      }),
    find: (namespaceId, id) => db.read(() => find(namespaceId, id)),
    add: (endpoint, max) =>
      db.write(() => {
        if (sql.count.get({ namespaceId: endpoint.namespaceId, max })! >= max) return false;
        sql.add.run(endpointRow(endpoint));
        addToFeed('endpoints', endpoint.id);
        return true;
      }),
    update: (namespaceId, id, changes) =>
      db.write(() => {
        const endpoint = find(namespaceId, id);
        return endpoint && store(changedEndpoint(endpoint, changes));
      }),
    rotate: (namespaceId, id, { secret, previousExpiresAt, now }) =>
      db.write(() => {
        const endpoint = find(namespaceId, id);
        if (!endpoint) return undefined;
        return store({
          ...endpoint,
          ...{ secret, previousSecret: endpoint.secret, previousSecretExpiresAt: previousExpiresAt },
          updatedAt: now,
        });
      }),
    disable: (id, reason, at) =>
      db.write(() => {
        if (sql.disable.run({ id, reason, at }).changes === 0) return false;
        addToFeed('endpoints', id);
        return true;
      }),
    remove: (namespaceId, id) =>
      db.write(() => {
        if (sql.remove.run({ namespaceId, id }).changes === 0) return false;
        addToFeed('endpoints', id);
        return true;
      }),
  };
}

interface ListValues {
  namespaceId: string;
  application: string | null;
  disabled: number | null;
  before: string;
  limit: number;
}

function statements(db: Database) {
  return {
    all: db.prepare<[], EndpointRow>(`select ${COLUMNS} from outgoing_endpoint`),
    read: db.prepare<[string], EndpointRow>(
      `select ${COLUMNS} from outgoing_endpoint where id in (select value from json_each(?))`,
    ),
    find: db.prepare<[{ id: string }], EndpointRow>(
      `select ${COLUMNS} from outgoing_endpoint where id = :id`,
    ),
    list: db.prepare<[ListValues], EndpointRow>(`
      select ${COLUMNS} from outgoing_endpoint
      where namespace_id = :namespaceId and id < :before and (:application is null or application = :application)
        and (:disabled is null or (disabled_reason is not null) = :disabled)
      order by id desc limit :limit`),
    count: db
      .prepare<[{ namespaceId: string; max: number }], number>(
        'select count(*) from (select 1 from outgoing_endpoint where namespace_id = :namespaceId limit :max)',
      )
      .pluck(),
    add: db.prepare<[EndpointRow]>(`
      insert into outgoing_endpoint (${Object.values(FIELDS).join(', ')})
      values (${Object.keys(FIELDS)
        .map((field) => `:${field}`)
        .join(', ')})`),
    store: db.prepare<[EndpointRow]>(`update outgoing_endpoint set ${SET} where id = :id`),
    disable: db.prepare<[{ id: string; reason: string; at: number }]>(`
      update outgoing_endpoint set disabled_reason = :reason, disabled_at = :at, updated_at = :at
      where id = :id and disabled_reason is null`),
    remove: db.prepare<[{ namespaceId: string; id: string }]>(
      'delete from outgoing_endpoint where id = :id and namespace_id = :namespaceId',
    ),
  };
}
