import type { Clock } from '../../../kit/time/clock.ts';
import {
  type SecretKey,
  type SecretRecord,
  type SecretRotation,
  secretFeedKey,
  type WebhookSecretStore,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { AddToFeed } from './feed.ts';

interface Row extends Omit<SecretRecord, 'namespaceInUrl' | 'lapsed'> {
  namespaceInUrl: 0 | 1;
}

/** Store of webhook secrets. Revoking a secret deletes its row. @spec Webhook secret record */
export function sqliteWebhookSecrets(db: Database, clock: Clock, addToFeed: AddToFeed): WebhookSecretStore {
  const sql = statements(db);
  const recordOf = (row: Row): SecretRecord => {
    const record = { ...row, lapsed: null, namespaceInUrl: row.namespaceInUrl === 1 };
    const isOver = row.previousExpiresAt !== null && row.previousExpiresAt <= clock.now();
    return isOver ? { ...record, previous: null, previousExpiresAt: null, lapsed: row.previous } : record;
  };
  return {
    async rotate(key, { namespaceInUrl, ...next }) {
      const rotation = {
        ...keyOf(key),
        ...next,
        namespaceInUrl: namespaceInUrl === undefined ? null : Number(namespaceInUrl),
      };
      const row = await db.write(() => {
        addToFeed('secrets', secretFeedKey(key));
        return sql.rotate.get(rotation)!;
      });
      return { rotated: row.rotated === 1, namespaceInUrl: row.namespaceInUrl === 1 };
    },
    async find(key) {
      const row = await db.read(() => sql.find.get(keyOf(key)));
      return row && recordOf(row);
    },
    revoke: (key) =>
      db.write(() => {
        const isRevoked = sql.revoke.run(keyOf(key)).changes === 1;
        if (isRevoked) addToFeed('secrets', secretFeedKey(key));
        return isRevoked;
      }),
    async list(namespaceId) {
      const rows = await db.read(() => sql.list.all({ namespaceId }));
      return rows.map(recordOf);
    },
    async previousUsed(key, at) {
      await db.write(() => sql.previousUsed.run({ ...keyOf(key), at }));
    },
  };
}

/** Returns a copy with only the fields of the key, because callers can pass objects with more fields. */
function keyOf({ namespaceId, pluginId, event, instanceId }: SecretKey): SecretKey {
  return { namespaceId, pluginId, event, instanceId };
}

function statements(db: Database) {
  const columns = `namespace_id as namespaceId, plugin_id as pluginId, event, instance_id as instanceId, current, previous,
    previous_expires_at as previousExpiresAt, rotated_at as rotatedAt, previous_used_at as previousUsedAt, namespace_in_url as namespaceInUrl`;
  const isKey =
    'namespace_id = :namespaceId and plugin_id = :pluginId and event = :event and instance_id = :instanceId';
  type Rotation = SecretKey & Omit<SecretRotation, 'namespaceInUrl'> & { namespaceInUrl: number | null };
  return {
    rotate: db.prepare<[Rotation], { rotated: 0 | 1; namespaceInUrl: 0 | 1 }>(`
      insert into webhook_secret (namespace_id, plugin_id, event, instance_id, current, rotated_at, namespace_in_url)
      values (:namespaceId, :pluginId, :event, :instanceId, :sealed, :now, coalesce(:namespaceInUrl, 0))
      on conflict (namespace_id, plugin_id, event, instance_id) do update set
        previous = current, previous_expires_at = :graceEndsAt, current = excluded.current,
        rotated_at = excluded.rotated_at, previous_used_at = null, namespace_in_url = coalesce(:namespaceInUrl, namespace_in_url)
      returning previous is not null as rotated, namespace_in_url as namespaceInUrl`),
    find: db.prepare<[SecretKey], Row>(`select ${columns} from webhook_secret where ${isKey}`),
    previousUsed: db.prepare<[SecretKey & { at: number }]>(
      `update webhook_secret set previous_used_at = :at where ${isKey}`,
    ),
    revoke: db.prepare<[SecretKey]>(`delete from webhook_secret where ${isKey}`),
    list: db.prepare<[{ namespaceId: string }], Row>(`
      select ${columns} from webhook_secret where namespace_id = :namespaceId order by plugin_id, event, instance_id`),
  };
}
