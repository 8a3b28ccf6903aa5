import { join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import {
  type ResealedRow,
  SEALED_COLUMNS,
  type SealedColumns,
  type SealedKey,
  type SealedRow,
  type SealedSecretStore,
} from '../../ports/index.ts';
import { replaceParameters, sealedRow, sealedStatements } from '../../sealed-statements.ts';
import { type Database, openDatabase } from '../database.ts';
import { GATEWAY_MIGRATIONS } from './schema.ts';

type Row = Record<string, string | number | null>;
type Count = { id: string; count: number };

/**
 * Counts the sealed values by the id of their key. A sealed value has the form `v1.<key id>.<data>`. Files of older
 * versions lack some of the tables.
 */
export function countSealed(sqlite: Sqlite.Database): Map<string, number> {
  const tables = new Set(
    sqlite.prepare<[], string>("select name from sqlite_schema where type = 'table'").pluck().all(),
  );
  const found = SEALED_COLUMNS.filter(({ table }) => tables.has(table));
  if (found.length === 0) return new Map();
  return countsOf(sqlite.prepare<[], Count>(countSql(found)).all());
}

/** Opens `svc.db` for access to its sealed values. Throws STORE_ERROR if the file cannot be used. */
export async function sqliteSealedSecrets(dataDir: string, logger: Logger): Promise<SealedSecretStore> {
  const db = await openDatabase({ file: join(dataDir, 'svc.db'), migrations: GATEWAY_MIGRATIONS, logger });
  const tables = new Map(SEALED_COLUMNS.map((columns) => [columns.table, statements(db, columns)]));
  const count = db.prepare<[], Count>(countSql(SEALED_COLUMNS));
  return {
    after: (table, last, limit) => db.read(() => tables.get(table)!.after(last, limit)),
    replace: (table, rows) => db.write(() => tables.get(table)!.replace(rows)),
    countByKey: async () => countsOf(await db.read(() => count.all())),
    close: () => db.close(),
  };
}

function countSql(columns: readonly SealedColumns[]): string {
  const values = columns.flatMap((table) => sealedStatements(table, '').counted).join(' union all ');
  return `select substr(sealed, 4, instr(substr(sealed, 4), '.') - 1) as id, count(*) as count
    from (${values}) group by id`;
}

const countsOf = (rows: readonly Count[]): Map<string, number> =>
  new Map(rows.map(({ id, count }) => [id, count]));

function statements(db: Database, columns: SealedColumns) {
  const sql = sealedStatements(columns, '');
  const first = db.prepare<[object], Row>(sql.first);
  const after = db.prepare<[object], Row>(sql.after);
  const replace = db.prepare<[object], { replaced: 1 }>(sql.replace);
  return {
    after(last: SealedKey | null, limit: number): SealedRow[] {
      const rows = last === null ? first.all({ limit }) : after.all({ ...last, limit });
      return rows.map((row) => sealedRow(columns, row));
    },
    replace: (rows: readonly ResealedRow[]): number =>
      rows.reduce((sum, row) => sum + replace.all(replaceParameters(row)).length, 0),
  };
}
