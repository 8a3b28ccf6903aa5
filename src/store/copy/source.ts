import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { openDatabase, sqliteGatewayStore } from '../sqlite/index.ts';
import { STATE_MIGRATIONS } from '../sqlite/state/schema.ts';
import { extensionPath } from '../sqlite/state/vector-extension.ts';
import { VECTOR_MIGRATIONS } from '../sqlite/state/vector-schema.ts';
import { TELEMETRY_MIGRATIONS } from '../sqlite/telemetry/schema.ts';
import { WORKFLOW_MIGRATIONS } from '../sqlite/workflow/schema.ts';
import type { TableCopy } from './tables.ts';

export type SourceFile = TableCopy['file'];
export const FILES: readonly SourceFile[] = [
  'svc.db',
  'workflow.db',
  'state.db',
  'vectors.db',
  'telemetry.db',
];

/**
 * Migrates the databases of a stopped platform to the current schema. Stores deliveries from the journal of a killed
 * gateway. The caller must hold all owner locks.
 */
export async function prepareSource(
  folder: string,
  options: { clock: Clock; logger: Logger },
): Promise<void> {
  const { logger } = options;
  const has = (file: SourceFile): boolean => existsSync(join(folder, file));
  if (has('svc.db')) await (await sqliteGatewayStore({ dataDir: folder, ...options })).close();
  for (const [file, migrations] of [
    ['workflow.db', WORKFLOW_MIGRATIONS],
    ['state.db', STATE_MIGRATIONS],
    ['vectors.db', VECTOR_MIGRATIONS],
    ['telemetry.db', TELEMETRY_MIGRATIONS],
  ] as const) {
    if (has(file)) await (await openDatabase({ file: join(folder, file), migrations, logger })).close();
  }
}

/** Databases of a prepared data folder, opened read-only. Services that never ran have no database. */
export class CopySource {
  readonly folder: string;
  readonly #open: ReadonlyMap<SourceFile, Sqlite.Database>;

  constructor(folder: string, files: readonly SourceFile[] = FILES) {
    this.folder = folder;
    const found = files.filter((file) => existsSync(join(folder, file)));
    this.#open = new Map(found.map((file) => [file, new Sqlite(join(folder, file), { readonly: true })]));
    this.#open.get('vectors.db')?.loadExtension(extensionPath());
  }

  has(file: SourceFile): boolean {
    return this.#open.has(file);
  }

  rows(file: SourceFile, sql: string, values: object = {}): IterableIterator<Record<string, unknown>> {
    return this.#database(file).prepare<[object], Record<string, unknown>>(sql).iterate(values);
  }

  /** Returns the number that a query selects. Returns 0 for null or if the query has no row. */
  number(file: SourceFile, sql: string, values: object = {}): number {
    if (!this.has(file)) return 0;
    return this.#database(file).prepare<[object], number | null>(sql).pluck().get(values) ?? 0;
  }

  /**
   * Returns the highest number that a table has ever assigned. Numbers of deleted rows are included if SQLite recorded
   * the sequence.
   */
  highest(file: SourceFile, table: string, column: string): number {
    const held = this.number(file, `select max(${column}) from ${table}`);
    const hasSequences = this.number(
      file,
      "select count(*) from sqlite_schema where name = 'sqlite_sequence'",
    );
    if (hasSequences === 0) return held;
    return Math.max(
      held,
      this.number(file, 'select seq from sqlite_sequence where name = :table', { table }),
    );
  }

  close(): void {
    for (const database of this.#open.values()) database.close();
  }

  #database(file: SourceFile): Sqlite.Database {
    const database = this.#open.get(file);
    if (!database) throw new Error(`${file} is not in ${this.folder}.`);
    return database;
  }
}
