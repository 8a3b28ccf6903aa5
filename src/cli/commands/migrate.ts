import { z } from 'zod';
import { postgresUrlOf } from '../../kit/config/store-url.ts';
import { silentLogger } from '../../kit/telemetry/logger.ts';
import { CancelledError, confirm } from '../confirm.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, ok } from '../define-command.ts';

interface Migrated {
  /**
   * Host, port and database without credentials. Null for SQLite, whose files are migrated when a service opens them.
   */
  server: string | null;
  /** Schema version before the command. 0 means that no tables existed. */
  before: number | null;
  after: number | null;
}

/** @spec docs/scale-out.md "Start" */
export const migrate = defineCommand({
  name: 'migrate',
  summary: 'Create or upgrade the tables of the platform in PostgreSQL',
  example: 'svc migrate --yes',
  args: z.object({}),
  async run(_args, context) {
    const { config, env } = context.platform();
    const url = postgresUrlOf(config.store, env);
    if (url === null) return ok<Migrated>({ server: null, before: null, after: null });
    return ok<Migrated>(await migrateServer(url, context));
  },
  text({ server, before, after }: Migrated, style) {
    if (server === null) return 'The store is SQLite. Its files are upgraded when the platform starts.';
    return before === after
      ? `The tables at ${server} are up to date (schema ${after}).`
      : `${style.green('✓')} The tables at ${server} are upgraded from schema ${before} to ${after}.`;
  },
});

/** Migrates the database. Prompts for confirmation only if the database needs changes. */
async function migrateServer(url: string, context: CommandContext): Promise<Migrated> {
  const { CURRENT_SCHEMA, migratePostgres, PostgresDatabase, readSchemaState } = await import(
    '../../store/postgres/index.ts'
  );
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-migrate' });
  try {
    const { server } = database;
    const { version } = await readSchemaState(database);
    const question = `Upgrade the tables at ${server} from schema ${version} to ${CURRENT_SCHEMA}?`;
    if (version < CURRENT_SCHEMA && !(await confirm(context, question))) throw new CancelledError();
    const { before, after } = await migratePostgres(database);
    return { server, before: before.version, after: after.version };
  } finally {
    await database.close();
  }
}
