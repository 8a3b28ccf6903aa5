import { join } from 'node:path';
import type { Environment } from '../../../kit/config/secret-ref.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import { databaseCommands, dumpDatabase } from '../../postgres/programs.ts';
import type { Style } from '../../style.ts';
import { DUMP_FILE, type DumpedDatabase } from './manifest.ts';

/** What a backup says about the PostgreSQL database of the platform. */
export interface BackedUpDatabase {
  /** Host, port and database without credentials. */
  server: string;
  /** Whether the archive contains the database. */
  included: boolean;
  /** Commands that dump and restore the database without `svc`. They need the password in `PGPASSWORD`. */
  dumpCommand: string;
  restoreCommand: string;
}

/** Describes the database at `url` for the result of the command. */
export function describeDatabase(url: string, included: boolean): BackedUpDatabase {
  const { host, pathname } = new URL(url);
  const { dump, restore } = databaseCommands(url);
  return { server: `${host}${pathname}`, included, dumpCommand: dump, restoreCommand: restore };
}

/** Dumps the database to the stage of a backup. Throws STORE_ERROR if the database has no or newer tables. */
export async function stageDatabase(
  url: string,
  stage: string,
  options: { withTelemetry: boolean; env: Environment },
): Promise<DumpedDatabase> {
  const { PostgresDatabase, readSchemaState, requireUsableSchema } = await import(
    '../../../store/postgres/index.ts'
  );
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-backup' });
  try {
    const state = await readSchemaState(database);
    requireUsableSchema(state, database.server);
    await dumpDatabase(url, join(stage, DUMP_FILE), options);
    return { server: database.server, schema: state.version };
  } finally {
    await database.close();
  }
}

/** Lines that say what the archive contains of the database. */
export function databaseText(database: BackedUpDatabase | null, style: Style): string[] {
  if (!database) return [];
  if (database.included) return [`It contains the database at ${database.server}.`];
  return [
    `${style.yellow('!')} It does not contain the database at ${database.server}.`,
    '  Add --with-database, or save the database with:',
    ...database.dumpCommand.split(/ (?=--)/).map((part, index, parts) => {
      const indent = index === 0 ? '    ' : '      ';
      return `${indent}${part}${index < parts.length - 1 ? ' \\' : ''}`;
    }),
  ];
}
