import { join } from 'node:path';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { TelemetryCounts, TelemetryStore } from '../../ports/telemetry.ts';
import { type Database, openDatabase } from '../database.ts';
import { droppedAdder } from './dropped-records.ts';
import { eventInserter, eventQueries } from './events.ts';
import { logInserter, logQueries } from './logs.ts';
import { permissionUseNoter, permissionUseQueries } from './permission-uses.ts';
import { telemetryPruner } from './retention.ts';
import { TELEMETRY_MIGRATIONS } from './schema.ts';

export const TELEMETRY_FILE = 'telemetry.db';

/**
 * Opens `telemetry.db`. Queries block the thread, so services use createTelemetryReader instead. Throws STORE_ERROR if
 * the file cannot be used.
 */
export async function sqliteTelemetryStore({
  dataDir,
  logger,
}: {
  dataDir: string;
  logger?: Logger;
}): Promise<TelemetryStore> {
  const db = await openDatabase({
    file: join(dataDir, TELEMETRY_FILE),
    migrations: TELEMETRY_MIGRATIONS,
    losable: true,
    ...(logger ? { logger } : {}),
  });
  const insertLog = logInserter(db);
  const insertEvents = eventInserter(db);
  const notePermissionUses = permissionUseNoter(db);
  const counts = countStatements(db);
  const addDropped = droppedAdder(db);
  return {
    append: (batch) =>
      db.write(() => {
        for (const log of batch.logs) insertLog(log);
        insertEvents(batch.events);
        notePermissionUses(batch.events);
        counts.add(batch.counts);
        addDropped(batch.dropped ?? []);
      }),
    prune: telemetryPruner(db),
    ...logQueries(db),
    ...eventQueries(db),
    ...permissionUseQueries(db),
    counts: () => db.read(counts.all),
    close: () => db.close(),
  };
}

function countStatements(db: Database) {
  const add = db.prepare<[string, number]>(`
    insert into telemetry_count (name, value) values (?, ?)
    on conflict do update set value = value + excluded.value`);
  const all = db.prepare<[], { name: string; value: number }>('select name, value from telemetry_count');
  return {
    add(counts: TelemetryCounts): void {
      for (const [name, value] of Object.entries(counts)) if (value !== 0) add.run(name, value);
    },
    all: (): TelemetryCounts => Object.fromEntries(all.all().map(({ name, value }) => [name, value])),
  };
}
