import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { openDatabase } from '../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../src/store/sqlite/svc/schema.ts';

/** Schema version before delivery lists existed, to measure an upgrade. */
const OLD_SCHEMA_VERSION = 7;
const BATCH = 50_000;

/** Fills `svc.db` with deliveries of an old version; one in a thousand failed, one in 200,000 is dead. */
export async function fillOldStore(dataDir: string, rows: number, bodyBytes: number): Promise<void> {
  const file = join(dataDir, 'svc.db');
  const options = { file, migrations: GATEWAY_MIGRATIONS.slice(0, OLD_SCHEMA_VERSION), pageBytes: 8192 };
  await (await openDatabase(options)).close();
  const db = new Sqlite(file);
  db.pragma('synchronous = off');
  db.function('v7', { deterministic: false }, (time: unknown) => uuidV7(Number(time)));
  const begin = Date.now() - rows * 200;
  const insert = db.prepare(`
    insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
      mode, origin, status, http_status, duration_ms, attempts, steps, outcome, marker, body_bytes, headers, body)
    with recursive n (i) as (select cast(:from as integer) union all select i + 1 from n where i + 1 < :to)
    select v7(${begin} + i * 200), 'default', 'plugin-' || (i % 5), 'event-' || (i % 4), '', ${begin} + i * 200, '203.0.113.7',
      hex(randomblob(16)), hex(randomblob(16)), 'async', 'sender',
      case when i % 200000 = 77 then 'dead' when i % 1000 = 7 then 'failed' else 'succeeded' end, 202, 12.5, 1,
      'route=ok@1us;namespace=ok@1us;body=ok@9us;dispatch=accepted@40us;dispatch=succeeded@900us', '{"exitCode":0}', null,
      ${bodyBytes}, '[["content-type","application/json"]]',
      cast(substr('{"id":"ord_' || i || '","token":"' || lower(hex(randomblob(24))) || '","customer":"cus_' || (i % 9973)
        || '","amount":' || (i * 7919 % 100000) || ',"currency":"EUR","lines":[{"sku":"A-' || (i % 311) || '","quantity":2}],"note":"'
        || printf('%.*c', ${bodyBytes}, 'x'), 1, ${bodyBytes - 2}) || '"}' as blob) from n`);
  const marker = db.prepare(`
    insert into delivery_marker (digest, state, expires_at)
    with recursive n (i) as (select cast(:from as integer) union all select i + 1 from n where i + 1 < :to)
    select randomblob(16), iif(i % 5000 = 3, 'pending', 'done'), ${Date.now() + 7 * 86_400_000} from n`);
  for (let from = 0; from < rows; from += BATCH) {
    const to = Math.min(rows, from + BATCH);
    db.transaction(() => {
      insert.run({ from, to });
      if (to > rows - MAX_MARKERS) marker.run({ from, to });
    })();
  }
  db.close();
}

/** The old version stored at most this many in this table. */
const MAX_MARKERS = 500_000;

function uuidV7(time: number): Buffer {
  const bytes = Buffer.alloc(16);
  crypto.getRandomValues(bytes);
  bytes.writeUIntBE(time, 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return bytes;
}
