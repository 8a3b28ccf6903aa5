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
  /** Whether a restored or cloned database was made usable. */
  adopted: boolean;
}

/** @spec docs/scale-out.md "Start" */
export const migrate = defineCommand({
  name: 'migrate',
  summary: 'Create or upgrade the tables of the platform in PostgreSQL',
  example: 'svc migrate --yes',
  args: z.object({
    adopt: z.boolean().default(false).describe('use a restored or cloned database in place of its original'),
  }),
  async run({ adopt }, context) {
    const { config, env } = context.platform();
    const url = postgresUrlOf(config.store, env);
    if (url === null) return ok<Migrated>({ server: null, before: null, after: null, adopted: false });
    return ok<Migrated>(await migrateServer(url, adopt, context));
  },
  text({ server, before, after, adopted }: Migrated, style) {
    if (server === null) return 'The store is SQLite. Its files are upgraded when the platform starts.';
    if (adopted) return `${style.green('✓')} The platform can start on ${server}: svc up -d`;
    return before === after
      ? `The tables at ${server} are up to date (schema ${after}).`
      : `${style.green('✓')} The tables at ${server} are upgraded from schema ${before} to ${after}.`;
  },
});

/** Migrates the database. Prompts for confirmation only if the database needs changes. */
async function migrateServer(url: string, adopt: boolean, context: CommandContext): Promise<Migrated> {
  const { adoptDatabase, CURRENT_SCHEMA, isCopy, migratePostgres, PostgresDatabase, readSchemaState } =
    await import('../../store/postgres/index.ts');
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-migrate' });
  try {
    const { server } = database;
    const { version } = await readSchemaState(database);
    const question = `Upgrade the tables at ${server} from schema ${version} to ${CURRENT_SCHEMA}?`;
    if (version < CURRENT_SCHEMA && !(await confirm(context, question))) throw new CancelledError();
    const { before, after } = await migratePostgres(database);
    const adopted = adopt && (await isCopy(database));
    if (adopted) {
      const warning = `Use the copy at ${server} in place of the original? If the original still runs, both run the same webhooks, schedules and workflows.`;
      if (!(await confirm(context, warning))) throw new CancelledError();
      await adoptDatabase(database);
    }
    return { server, before: before.version, after: after.version, adopted };
  } finally {
    await database.close();
  }
}
