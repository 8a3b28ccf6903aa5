import { sql } from 'kysely';
import type { Clock } from '../../../kit/time/clock.ts';
import {
  type SecretKey,
  type SecretRecord,
  secretFeedKey,
  type WebhookSecretStore,
} from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Tables } from '../tables.ts';
import type { PostgresFeed } from './feed.ts';

/** Secret store. A revoked secret has no row. @spec Webhook secret record */
export function postgresWebhookSecrets(
  database: PostgresDatabase,
  clock: Clock,
  feed: PostgresFeed,
): WebhookSecretStore {
  return {
    rotate: (key, { sealed, graceEndsAt, now, namespaceInUrl }) =>
      database.transaction(async (query) => {
        await feed.add(query, 'secrets', secretFeedKey(key));
        return query
          .insertInto('webhookSecret')
          .values({
            ...keyOf(key),
            current: sealed,
            previous: null,
            previousExpiresAt: null,
            previousUsedAt: null,
            rotatedAt: now,
            namespaceInUrl: namespaceInUrl ?? false,
          })
          .onConflict((conflict) =>
            conflict.columns(['namespaceId', 'pluginId', 'event', 'instanceId']).doUpdateSet((values) => ({
              previous: values.ref('webhookSecret.current'),
              previousExpiresAt: graceEndsAt,
              current: values.ref('excluded.current'),
              rotatedAt: values.ref('excluded.rotatedAt'),
              previousUsedAt: null,
              namespaceInUrl: namespaceInUrl ?? values.ref('webhookSecret.namespaceInUrl'),
            })),
          )
          .returning(['namespaceInUrl', sql<boolean>`previous is not null`.as('rotated')])
          .executeTakeFirstOrThrow();
      }),
    async find(key) {
      const row = await database.run((query) =>
        query
          .selectFrom('webhookSecret')
          .selectAll()
          .where((where) => where.and(keyOf(key)))
          .executeTakeFirst(),
      );
      return row && recordOf(row, clock.now());
    },
    revoke: (key) =>
      database.transaction(async (query) => {
        const { numDeletedRows } = await query
          .deleteFrom('webhookSecret')
          .where((where) => where.and(keyOf(key)))
          .executeTakeFirst();
        if (numDeletedRows === 1n) await feed.add(query, 'secrets', secretFeedKey(key));
        return numDeletedRows === 1n;
      }),
    async list(namespaceId) {
      const rows = await database.run((query) =>
        query
          .selectFrom('webhookSecret')
          .selectAll()
          .where('namespaceId', '=', namespaceId)
          .orderBy('pluginId')
          .orderBy('event')
          .orderBy('instanceId')
          .execute(),
      );
      return rows.map((row) => recordOf(row, clock.now()));
    },
    async previousUsed(key, at) {
      await database.run((query) =>
        query
          .updateTable('webhookSecret')
          .set({ previousUsedAt: at })
          .where((where) => where.and(keyOf(key)))
          .execute(),
      );
    },
  };
}

function recordOf(row: Tables['webhookSecret'], now: number): SecretRecord {
  const hasLapsed = row.previousExpiresAt !== null && row.previousExpiresAt <= now;
  return hasLapsed
    ? { ...row, previous: null, previousExpiresAt: null, lapsed: row.previous }
    : { ...row, lapsed: null };
}

/** Returns only the key fields, because callers can pass objects with more fields. */
function keyOf({ namespaceId, pluginId, event, instanceId }: SecretKey): SecretKey {
  return { namespaceId, pluginId, event, instanceId };
}
