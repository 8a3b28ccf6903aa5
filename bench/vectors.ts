import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import { openStateStore } from '../src/store/open-store.ts';
import type { StateStore, VectorRecord } from '../src/store/ports/index.ts';
import { migratePostgres, PostgresDatabase } from '../src/store/postgres/index.ts';
import { PostgresServer, postgresPrograms } from './support/cluster/postgres-server.ts';
import { type BenchResult, median, round } from './support/result.ts';

const COUNTS = (process.env.BENCH_VECTORS ?? '10000,100000').split(',').map(Number);
const DIMENSIONS = 384;
const BATCH = 500;
const ROUNDS = 30;
const TOP = 10;
const GROUPS = 100;

/** Measures writes and searches of vectors in both stores. With PostgreSQL, two nodes write and search. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-vectors-'));
  const postgres = postgresPrograms() ? await PostgresServer.start() : undefined;
  try {
    const rows: BenchResult['rows'] = [];
    if (postgres) await migrate(postgres.url());
    for (const count of COUNTS) {
      rows.push(await measure('SQLite', count, await openNodes(folder, `sqlite-${count}`, null)));
      if (!postgres) continue;
      rows.push(await measure('PostgreSQL', count, await openNodes(folder, `pg-${count}`, postgres.url())));
    }
    return {
      name: `Vectors of ${DIMENSIONS} dimensions, top ${TOP}`,
      rows,
      note: `Medians of ${ROUNDS} calls in ms; batches have ${BATCH} vectors. "Filtered" searches compare 1 of ${GROUPS} vectors. "After a write": another node has just written one vector. "First search" copies the collection to a new node. Both stores sync commits to the disk.`,
    };
  } finally {
    await postgres?.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

async function migrate(url: string): Promise<void> {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-bench' });
  await migratePostgres(database);
  await database.close();
}

/** Opens one store with SQLite, and the stores of two nodes with PostgreSQL. */
async function openNodes(folder: string, name: string, postgresUrl: string | null): Promise<StateStore[]> {
  const open = async (node: number): Promise<StateStore> => {
    const dataDir = join(folder, `${name}-${node}`);
    await mkdir(dataDir);
    return openStateStore({ postgresUrl, dataDir, clock: systemClock, logger: silentLogger });
  };
  return postgresUrl === null ? [await open(0)] : [await open(0), await open(1)];
}

async function measure(store: string, count: number, nodes: StateStore[]): Promise<BenchResult['rows'][0]> {
  const [one, two] = nodes as [StateStore, StateStore?];
  const key = { tenant: 'acme', namespace: 'plugin:bench', collection: `c${count}` };
  const upsert = (items: VectorRecord[]) => one.vectors.upsert(key, items, Number.MAX_SAFE_INTEGER);
  const search = (node: StateStore, filter = {}) =>
    node.vectors.search(key, { vector: randomVector(), limit: TOP, filter });
  try {
    const batches: number[] = [];
    for (let at = 0; at < count; at += BATCH) {
      const items = Array.from({ length: BATCH }, (_, n) => itemOf(at + n));
      batches.push(await timeOf(() => upsert(items)));
    }
    const first = await timeOf(() => search(two ?? one));
    const searches = await timesOf(() => search(two ?? one));
    const filtered = await timesOf(() => search(two ?? one, { group: 7 }));
    const singles: number[] = [];
    const afterWrites: number[] = [];
    for (let n = 0; n < ROUNDS; n++) {
      singles.push(await timeOf(() => upsert([itemOf(count + n)])));
      afterWrites.push(await timeOf(() => search(two ?? one)));
    }
    return {
      store,
      vectors: count,
      'vectors/s': round((BATCH * 1000) / median(batches)),
      batch: round(median(batches), 1),
      'one vector': round(median(singles), 1),
      search: round(median(searches), 1),
      filtered: round(median(filtered), 1),
      'after a write': round(median(afterWrites), 1),
      'first search': round(first),
    };
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}

async function timesOf(work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < ROUNDS; n++) times.push(await timeOf(work));
  return times;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function itemOf(n: number): VectorRecord {
  return { id: `item-${n}`, vector: randomVector(), metadata: { group: n % GROUPS, title: `Document ${n}` } };
}

function randomVector(): number[] {
  return Array.from({ length: DIMENSIONS }, () => Math.random() - 0.5);
}
