import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '../src/kit/security/random.ts';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import { days } from '../src/kit/time/duration.ts';
import type { NewDelivery } from '../src/store/ports/index.ts';
import { openDatabase, sqliteGatewayStore } from '../src/store/sqlite/index.ts';
import { countingCost } from './support/counting-cost.ts';

export interface BenchResult {
  name: string;
  rows: Array<Record<string, string | number>>;
  note?: string;
}

const ROUNDS = 7;
const ROW_BYTES = 500;
const BODY_BYTES = 2048;
const random = systemRandom();

/** A way of writing, with the number of writes and concurrent writers. */
interface Contender {
  name: string;
  writers: number;
  writes: number;
  write: (index: number) => unknown;
}

/** Durable writes per second at `synchronous=FULL`: one commit per write, and group commits per event loop turn. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  try {
    const { contenders, close } = await openContenders(folder);
    const rates = await measure(contenders);
    await close();
    const alone = median(rates.get(contenders[0]!)!);
    const rows: BenchResult['rows'] = contenders.map((contender) => {
      const rate = median(rates.get(contender)!);
      return {
        store: contender.name,
        'in flight': contender.writers,
        'writes/s': Math.round(rate),
        'us a write': Number((1e6 / rate).toFixed(1)),
        'x sequential': Number((rate / alone).toFixed(1)),
      };
    });
    const counting = await countingCost();
    const countingRow = (store: string, us: number) => ({
      ...{ store, 'in flight': 1, 'writes/s': Math.round(1e6 / us) },
      'us a write': Number(us.toFixed(1)),
      'x sequential': '',
    });
    rows.push(
      countingRow('delivery and its end, counted per hour', counting.with),
      countingRow('the same without the triggers that count', counting.without),
    );
    return {
      name: 'Durable writes (SQLite, WAL, synchronous=FULL)',
      rows,
      note: `Medians of ${ROUNDS} interleaved rounds in ${tmpdir()}. The last two rows write to the schema of svc.db without fsync, and show what its triggers cost.`,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function openContenders(folder: string) {
  const db = await openDatabase({
    file: join(folder, 'rows.db'),
    migrations: ['create table line (id integer primary key, text text not null)'],
  });
  const store = await sqliteGatewayStore({ dataDir: folder, clock: systemClock, logger: silentLogger });
  const insert = db.prepare<[string]>('insert into line (text) values (?)');
  const text = 'x'.repeat(ROW_BYTES);
  const grouped = (writers: number): Contender => ({
    name: `row of ${ROW_BYTES} bytes, group commit`,
    writers,
    writes: writers * 300,
    write: () => db.write(() => insert.run(text)),
  });
  const contenders: Contender[] = [
    { name: `row of ${ROW_BYTES} bytes, sequential`, writers: 1, writes: 500, write: () => insert.run(text) },
    ...[1, 8, 64, 256].map(grouped),
    {
      name: 'state entry, one key per write',
      writers: 64,
      writes: 64 * 200,
      write: (i) => store.cache.set('bench', `${i}:${random.uuid()}`, text),
    },
    {
      name: `async delivery of ${BODY_BYTES} bytes with its marker`,
      writers: 64,
      writes: 64 * 200,
      write: () =>
        store.inbox.accept(
          delivery(),
          { key: random.secret(16), expiresAt: systemClock.now() + days(7) },
          '[]',
        ),
    },
  ];
  const close = async (): Promise<void> => {
    await Promise.all([db.close(), store.close()]);
  };
  return { contenders, close };
}

const BODY = Buffer.alloc(BODY_BYTES, 'payload ');
const HEADERS = JSON.stringify({ 'content-type': 'application/json', 'user-agent': 'bench' });

function delivery(): NewDelivery {
  return {
    webhookId: random.uuid(),
    namespaceId: 'default',
    pluginId: 'github',
    event: 'push',
    instanceId: '',
    receivedAt: systemClock.now(),
    source: '127.0.0.1',
    requestId: random.uuid(),
    traceId: random.uuid(),
    headers: HEADERS,
    body: BODY,
    bodyBytes: BODY_BYTES,
    mode: 'async',
    origin: 'sender',
    replayOf: null,
    orderKey: null,
  };
}

/** Rounds are interleaved, so that other load affects all contenders equally. */
async function measure(contenders: Contender[]): Promise<Map<Contender, number[]>> {
  const rates = new Map(contenders.map((contender) => [contender, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const contender of contenders) rates.get(contender)!.push(await rateOf(contender));
  }
  return rates;
}

async function rateOf({ writers, writes, write }: Contender): Promise<number> {
  let next = 0;
  async function writeOn(): Promise<void> {
    while (next < writes) await write(next++);
  }
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: writers }, writeOn));
  return writes / ((performance.now() - startedAt) / 1000);
}

function median(values: number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;
}

if (import.meta.main) {
  const { name, rows, note } = await run();
  console.log(name);
  console.table(rows);
  console.log(note);
}
