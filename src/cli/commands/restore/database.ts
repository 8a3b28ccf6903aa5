import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../../kit/config/secret-ref.ts';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import type { PostgresDatabase } from '../../../store/postgres/index.ts';
import type { CommandContext } from '../../context.ts';
import { restoreDatabase } from '../../postgres/programs.ts';
import { type BackupManifest, DUMP_FILE } from '../backup/manifest.ts';

/** A database into which a backup can be restored. */
export class RestoreTarget {
  readonly #url: string;
  readonly #env: Environment;
  /** Host, port and database without credentials. */
  readonly server: string;

  private constructor(url: string, server: string, env: Environment) {
    this.#url = url;
    this.#env = env;
    this.server = server;
  }

  /**
   * Returns the configured database, or undefined if the backup has no database. Throws CONFLICT if the store is not
   * PostgreSQL or already has the platform's tables, and STORE_ERROR if the backup is too new.
   */
  static async of(
    { database, version: madeBy }: BackupManifest,
    context: CommandContext,
  ): Promise<RestoreTarget | undefined> {
    if (!database) return undefined;
    const { config, env } = context.platform();
    const url = postgresUrlOf(config.store, env);
    if (url === null)
      throw new PlatformError(
        'CONFLICT',
        `The backup contains the PostgreSQL database ${database.server}, but store.url is SQLite.`,
        { details: { hint: 'Set store.url to an empty PostgreSQL database.' } },
      );
    const { CURRENT_SCHEMA } = await import('../../../store/postgres/index.ts');
    if (database.schema > CURRENT_SCHEMA)
      throw new PlatformError(
        'STORE_ERROR',
        `The backup was created by svc ${madeBy}, whose database is newer than this version supports (schema ${database.schema}; supported: ${CURRENT_SCHEMA}).`,
        { details: { hint: `Install svc ${madeBy} or newer.` } },
      );
    return new RestoreTarget(url, await requireEmpty(url), context.env);
  }

  /** Moves the dump from the unpacked backup into the database. */
  async fill(unpacked: string): Promise<void> {
    const file = join(unpacked, DUMP_FILE);
    await restoreDatabase(this.#url, file, this.#env);
    rmSync(file);
  }

  /** Removes the restored tables after a failure of a later step, so that the restore can be repeated. */
  async clear(): Promise<void> {
    await withDatabase(this.#url, (database) => database.sql('drop schema if exists svc cascade'));
  }
}

/** Returns the name of the server. Throws CONFLICT unless the database has no schema of the platform. */
function requireEmpty(url: string): Promise<string> {
  return withDatabase(url, async (database) => {
    const { rows } = await database.sql(`select from pg_namespace where nspname = 'svc'`);
    if (rows.length === 0) return database.server;
    throw new PlatformError(
      'CONFLICT',
      `The database at ${database.server} already has tables of a platform. Nothing was changed.`,
      { details: { hint: 'Create an empty database with createdb, and set store.url to it.' } },
    );
  });
}

async function withDatabase<Result>(
  url: string,
  work: (database: PostgresDatabase) => Promise<Result>,
): Promise<Result> {
  const drivers = await import('../../../store/postgres/index.ts');
  const database = new drivers.PostgresDatabase({
    url,
    logger: silentLogger,
    applicationName: 'svc-restore',
  });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
