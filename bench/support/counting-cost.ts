import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { openDatabase } from '../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../src/store/sqlite/svc/schema.ts';
import { median } from './result.ts';

const ROUNDS = 15;
const DELIVERIES = 4000;
const TRIGGERS = ['delivery_counted', 'delivery_recounted'] as const;

/** Microseconds per delivery, for its insert and its end, with and without the triggers that count it per hour. */
export async function countingCost(): Promise<{ with: number; without: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-counting-'));
  try {
    const databases = await Promise.all([open(join(folder, 'with.db')), open(join(folder, 'without.db'))]);
    for (const trigger of TRIGGERS) databases[1].exec(`drop trigger ${trigger}`);
    const took = databases.map(() => [] as number[]);
    // Rounds are interleaved, so that other load affects both equally.
    for (let round = 0; round < ROUNDS; round++)
      for (const [index, db] of databases.entries()) took[index]!.push(writeRound(db, round));
    for (const db of databases) db.close();
    return { with: median(took[0]!), without: median(took[1]!) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function open(file: string): Promise<Sqlite.Database> {
  await (await openDatabase({ file, migrations: GATEWAY_MIGRATIONS, pageBytes: 8192 })).close();
  const db = new Sqlite(file);
  // Only the work of the processor is compared.
  db.pragma('synchronous = off');
  return db;
}

/** Writes one round of deliveries and returns the time per delivery in microseconds. */
function writeRound(db: Sqlite.Database, round: number): number {
  const insert = db.prepare(`
    insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
      mode, origin, status, attempts, steps, body_bytes, headers, body)
    values (?, 'default', 'github', 'push', '', ?, '127.0.0.1', 'r', 't', 'async', 'sender', 'accepted', 0, '', 500, '[]', ?)`);
  const end = db.prepare(`update delivery set status = 'succeeded', attempts = 1 where webhook_id = ?`);
  const body = Buffer.alloc(500, 'payload ');
  const ids = Array.from({ length: DELIVERIES }, () => crypto.getRandomValues(new Uint8Array(16)));
  const startedAt = performance.now();
  db.transaction(() => {
    for (const [index, id] of ids.entries()) insert.run(id, 1_900_000_000_000 + round * 1000 + index, body);
  })();
  db.transaction(() => {
    for (const id of ids) end.run(id);
  })();
  return ((performance.now() - startedAt) * 1000) / DELIVERIES;
}
