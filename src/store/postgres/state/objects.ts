import { sql } from 'kysely';
import type { StoredObject } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { requireObjectQuota, scopeName } from '../../object-rules.ts';
import { type ObjectStore, requireStorableKey } from '../../ports/index.ts';
import { prefixEnd } from '../../prefix-end.ts';
import type { PostgresDatabase, Query } from '../database.ts';

export interface PostgresObjectsOptions {
  /** Maximum bytes per scope. */
  quotaBytes: number;
  clock: Clock;
}

export const CHUNK_BYTES = 256 * 1024;
/** Distinguishes the lock of a scope from other advisory locks. */
const LOCK_SEED = 0x6f626a;

/** Object store that keeps object contents in chunks. A reader always gets one complete version of an object. */
export function postgresObjects(
  database: PostgresDatabase,
  { quotaBytes, clock }: PostgresObjectsOptions,
): ObjectStore {
  const columns = ['key', 'bytes', 'modifiedAt'] as const;
  return {
    async read(scope, key) {
      requireStorableKey(key);
      const { rows } = await database.sql<StoredObject & { data: Buffer | null }>(
        `select o.key, o.bytes, o.modified_at as "modifiedAt",
           (select string_agg(c.data, ''::bytea order by c.n) from svc.state_object_chunk c where c.object_id = o.id) as data
         from svc.state_object o where o.scope = $1 and o.key = $2`,
        [scopeName(scope), key],
      );
      const [row] = rows;
      return row && { ...row, data: row.data ?? new Uint8Array() };
    },
    async write(scope, key, data) {
      requireStorableKey(key);
      const name = scopeName(scope);
      await database.transaction(async (query) => {
        await lockScope(query, name);
        const used = await usageOf(query, name);
        const former = await remove(query, name, key);
        requireObjectQuota(data.byteLength, used - (former ?? 0), quotaBytes);
        const { id } = await query
          .insertInto('stateObject')
          .values({ scope: name, key, bytes: data.byteLength, modifiedAt: clock.now() })
          .returning('id')
          .executeTakeFirstOrThrow();
        for (let n = 0; n * CHUNK_BYTES < data.byteLength; n++) {
          const chunk = Buffer.from(data.subarray(n * CHUNK_BYTES, (n + 1) * CHUNK_BYTES));
          await query.insertInto('stateObjectChunk').values({ objectId: id, n, data: chunk }).execute();
        }
        await addUsage(query, name, data.byteLength - (former ?? 0));
      });
    },
    delete(scope, key) {
      requireStorableKey(key);
      const name = scopeName(scope);
      return database.transaction(async (query) => {
        await lockScope(query, name);
        const former = await remove(query, name, key);
        if (former !== undefined) await addUsage(query, name, -former);
        return former !== undefined;
      });
    },
    stat(scope, key) {
      requireStorableKey(key);
      return database.run((query) =>
        query
          .selectFrom('stateObject')
          .select(columns)
          .where('scope', '=', scopeName(scope))
          .where('key', '=', key)
          .executeTakeFirst(),
      );
    },
    list(scope, { prefix, after, limit }) {
      requireStorableKey(prefix, after ?? '');
      return database.run((query) => {
        let page = query
          .selectFrom('stateObject')
          .select(columns)
          .where('scope', '=', scopeName(scope))
          .where('key', '>=', prefix);
        const end = prefixEnd(prefix);
        if (end !== undefined) page = page.where('key', '<', end);
        if (after !== undefined) page = page.where('key', '>', after);
        return page.orderBy('key').limit(limit).execute();
      });
    },
    async close() {},
  };
}

/** Serializes changes of a scope, so that concurrent writes cannot exceed the quota. */
async function lockScope(query: Query, scope: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${scope}, ${sql.lit(LOCK_SEED)}))`.execute(query);
}

async function usageOf(query: Query, scope: string): Promise<number> {
  const row = await query
    .selectFrom('stateObjectUsage')
    .select('bytes')
    .where('scope', '=', scope)
    .executeTakeFirst();
  return row?.bytes ?? 0;
}

async function addUsage(query: Query, scope: string, bytes: number): Promise<void> {
  await query
    .insertInto('stateObjectUsage')
    .values({ scope, bytes })
    .onConflict((conflict) =>
      conflict.column('scope').doUpdateSet({ bytes: sql<number>`state_object_usage.bytes + ${bytes}` }),
    )
    .execute();
}

/** Deletes an object with its chunks. Returns the size of the object, or undefined if the object does not exist. */
async function remove(query: Query, scope: string, key: string): Promise<number | undefined> {
  const row = await query
    .deleteFrom('stateObject')
    .where('scope', '=', scope)
    .where('key', '=', key)
    .returning('bytes')
    .executeTakeFirst();
  return row?.bytes;
}
