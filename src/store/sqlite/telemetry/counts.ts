import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TelemetryCounts } from '../../ports/telemetry.ts';
import { openDatabase } from '../database.ts';
import { TELEMETRY_MIGRATIONS } from './schema.ts';
import { TELEMETRY_FILE } from './store.ts';

/**
 * Reads the counters for a metrics scrape. Returns an empty object if the file is missing. The query reads only a few
 * rows and needs no worker.
 */
export async function readTelemetryCounts(dataDir: string): Promise<TelemetryCounts> {
  const file = join(dataDir, TELEMETRY_FILE);
  if (!existsSync(file)) return {};
  const db = await openDatabase({ file, migrations: TELEMETRY_MIGRATIONS, readonly: true });
  try {
    const rows = db.prepare<[], { name: string; value: number }>('select name, value from telemetry_count');
    return await db.read(() => Object.fromEntries(rows.all().map(({ name, value }) => [name, value])));
  } finally {
    await db.close();
  }
}
