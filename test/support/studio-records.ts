import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { openDatabase, WORKFLOW_FILE } from '../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS } from '../../src/store/sqlite/svc/schema.ts';
import { WORKFLOW_MIGRATIONS } from '../../src/store/sqlite/workflow/schema.ts';

/** Rows per transaction. */
const BATCH = 50_000;
const SPACING_MS = 400;
const GATEWAY_PAGE_BYTES = 8192;

export interface RecordCounts {
  deliveries: number;
  runs: number;
}

/** One delivery in this many has the status `dead`, and one run in this many belongs to the workflow `rare`. */
export const RARE_EVERY = 5000;
/** Plugin of the seeded deliveries. No such plugin is installed. */
export const SEEDED_PLUGIN = 'plugin-3';

/**
 * Writes deliveries and finished runs into the databases of a data folder that no service uses. Triggers of the schema
 * fill the tables of the lists.
 */
export async function seedRecords(dataDir: string, { deliveries, runs }: RecordCounts): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const now = Date.now();
  await fill(
    { file: join(dataDir, 'svc.db'), migrations: GATEWAY_MIGRATIONS, pageBytes: GATEWAY_PAGE_BYTES },
    [deliverySql(now - deliveries * SPACING_MS)],
    deliveries,
  );
  const begin = now - runs * SPACING_MS;
  const file = join(dataDir, WORKFLOW_FILE);
  await fill({ file, migrations: WORKFLOW_MIGRATIONS }, [runSql(begin), jobSql(begin), stepSql(begin)], runs);
  const db = new Sqlite(file);
  const define = db.prepare('insert into definition (hash, workflow_id, body, used_at) values (?, ?, ?, ?)');
  define.run('seeded', 'workflow-1', JSON.stringify(DEFINITION), now);
  db.close();
}

const STEPS = ['check', 'pack', 'ship'].map((id) => ({ id, uses: 'set', with: { done: true } }));
const DEFINITION = { id: 'workflow-1', jobs: { main: { steps: STEPS } } };

async function fill(
  options: Parameters<typeof openDatabase>[0],
  inserts: readonly string[],
  rows: number,
): Promise<void> {
  await (await openDatabase(options)).close();
  const db = new Sqlite(options.file);
  db.pragma('synchronous = off');
  db.function('v7', { deterministic: false }, (time: unknown) => uuidV7(Number(time)));
  const statements = inserts.map((insert) => db.prepare<[{ from: number; to: number }]>(insert));
  for (let from = 0; from < rows; from += BATCH) {
    const to = Math.min(rows, from + BATCH);
    db.transaction(() => {
      for (const statement of statements) statement.run({ from, to });
    })();
  }
  db.pragma('wal_checkpoint(truncate)');
  db.close();
}

// Parameters are bound as floating-point numbers, whose text would end in ".0".
const NUMBERS = `with recursive n (i) as (select cast(:from as integer) union all select i + 1 from n where i + 1 < :to)`;

const deliverySql = (begin: number): string => `
  insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
    mode, origin, status, http_status, duration_ms, attempts, steps, outcome, body_bytes, headers, body)
  ${NUMBERS}
  select v7(${begin} + i * ${SPACING_MS}), 'default', 'plugin-' || (i % 5), 'event-' || (i % 4), '',
    ${begin} + i * ${SPACING_MS}, '203.0.113.7', hex(randomblob(16)), hex(randomblob(16)), 'async', 'sender',
    case when i % ${RARE_EVERY} = 77 then 'dead' when i % 100 = 7 then 'failed' else 'succeeded' end, 202, 12.5, 1,
    'route=ok@1us;namespace=ok@1us;body=ok@9us;dispatch=accepted@40us;dispatch=succeeded@900us', '{"exitCode":0}',
    120, '[["content-type","application/json"]]',
    cast('{"id":"ord_' || i || '","customer":"cus_' || (i % 9973) || '","amount":' || (i * 7919 % 100000)
      || ',"currency":"EUR"}' as blob)
  from n`;

const runSql = (begin: number): string => `
  insert into run (seq, id, kind, tenant_id, workflow_id, definition_hash, status, ready, rank, priority, resume_count,
    crashes, trigger_kind, depth, host_id, request_id, trace_id, created_at, started_at, finished_at, input, output, error)
  ${NUMBERS}
  select i + 1, 'run_' || lower(hex(v7(${begin} + i * ${SPACING_MS}))), 'workflow', 'default',
    case when i % ${RARE_EVERY} = 77 then 'rare' else 'workflow-' || (i % 5) end, 'seeded',
    iif(i % 100 = 7, 'failed', 'succeeded'), 0, 0, 0, 0, 0, 'webhook', 0, 'operator', hex(randomblob(16)),
    hex(randomblob(16)), ${begin} + i * ${SPACING_MS}, ${begin} + i * ${SPACING_MS} + 3, ${begin} + i * ${SPACING_MS} + 150,
    '{"order":' || i || '}', iif(i % 100 = 7, null, '{"shipped":true}'),
    iif(i % 100 = 7, '{"code":"HANDLER_ERROR","message":"The carrier did not answer.","details":{}}', null)
  from n`;

const jobSql = (begin: number): string => `
  insert into job (run_seq, key, job_id, status, outputs, started_at, finished_at)
  ${NUMBERS}
  select i + 1, 'main', 'main', iif(i % 100 = 7, 'failed', 'succeeded'), '{}', ${begin} + i * ${SPACING_MS} + 3,
    ${begin} + i * ${SPACING_MS} + 150
  from n`;

const stepSql = (begin: number): string => `
  insert into step (run_seq, job_key, idx, status, attempts, output, started_at, attempt_at, finished_at)
  ${NUMBERS}
  select i + 1, 'main', column1, 'succeeded', 1, '{"ok":true}', ${begin} + i * ${SPACING_MS} + 3,
    ${begin} + i * ${SPACING_MS} + 3, ${begin} + i * ${SPACING_MS} + 100
  from n, (values (0), (1), (2))`;

function uuidV7(time: number): Buffer {
  const bytes = Buffer.alloc(16);
  crypto.getRandomValues(bytes);
  bytes.writeUIntBE(time, 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return bytes;
}
