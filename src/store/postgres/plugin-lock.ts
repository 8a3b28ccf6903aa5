import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { LockFile, type ServiceName } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { PluginLockStore } from '../ports/index.ts';
import type { PostgresDatabase } from './database.ts';
import { DATABASE_TIME } from './database-clock.ts';
import { postgresError } from './postgres-error.ts';

/** Table of the plugin list, which has at most one row, and the revision that each member has loaded. */
export const PLUGIN_LOCK = `
  create table svc.plugin_lock (
    id boolean primary key default true check (id),
    revision bigint not null,
    plugins json not null
  );
  alter table svc.member add column plugin_revision bigint;`;

/** Key of the advisory lock that lets one node at a time change the list: the bytes of `svc` and a 2. */
const LOCK_KEY = 0x73766302;
/**
 * Maximum wait for the lock. It is long, because the holder of the lock can wait for other nodes and for hooks of
 * plugins.
 */
const LOCK_WAIT_MS = minutes(1);
const RETRY_MS = 50;
/** Lets the server detect within 20 s that the machine of the lock's holder is gone. */
const KEEP_ALIVE =
  'set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3';

interface LockRow {
  revision: number;
  plugins: LockFile['plugins'];
}

export class PostgresPluginLock implements PluginLockStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async read(): Promise<LockFile | undefined> {
    const { rows } = await this.#database.sql<LockRow>('select revision, plugins from svc.plugin_lock');
    return rows[0] && LockFile.parse({ version: 1, ...rows[0] });
  }

  async revision(): Promise<number> {
    const { rows } = await this.#database.sql<LockRow>('select revision from svc.plugin_lock');
    return rows[0]?.revision ?? 0;
  }

  async replace({ revision, plugins }: LockFile): Promise<boolean> {
    const { rows } = await this.#database.sql(
      `insert into svc.plugin_lock as held (revision, plugins) values ($1, $2::json)
       on conflict (id) do update set revision = excluded.revision, plugins = excluded.plugins
       where held.revision = excluded.revision - 1 returning revision`,
      [revision, JSON.stringify(plugins)],
    );
    return rows.length === 1;
  }

  async exclusive<Result>(change: () => Promise<Result>): Promise<Result> {
    const client = await this.#connect();
    try {
      await this.#lock(client);
      return await change();
    } finally {
      // Closing the connection also releases the lock.
      client.release(true);
    }
  }

  async noteLoaded(fence: number, revision: number): Promise<void> {
    await this.#database.sql('update svc.member set plugin_revision = $2 where fence = $1', [
      fence,
      revision,
    ]);
  }

  async behind(revision: number, kind?: ServiceName): Promise<string[]> {
    const { rows } = await this.#database.sql<{ instance: string }>(
      `select distinct instance from svc.member
       where plugin_revision < $1 and ($2::text is null or kind = $2) and ended_at is null
         and (lease_until is null or lease_until > ${DATABASE_TIME})
       order by instance`,
      [revision, kind ?? null],
    );
    return rows.map(({ instance }) => instance);
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#database.pool.connect();
    } catch (error) {
      throw postgresError(this.#database.server, error);
    }
  }

  async #lock(client: pg.PoolClient): Promise<void> {
    const until = performance.now() + LOCK_WAIT_MS;
    try {
      await client.query(KEEP_ALIVE);
      for (;;) {
        const { rows } = await client.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [
          LOCK_KEY,
        ]);
        if (rows[0]!.held) return;
        if (performance.now() > until) break;
        await sleep(RETRY_MS);
      }
    } catch (error) {
      throw postgresError(this.#database.server, error);
    }
    throw new PlatformError(
      'CONFLICT',
      'Another node has been changing the plugins for a minute. Try again when it has finished.',
    );
  }
}
