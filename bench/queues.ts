import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PgBoss } from 'pg-boss';
import { Pool } from 'undici';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import type { QueueStore } from '../src/store/ports/index.ts';
import { PostgresDatabase } from '../src/store/postgres/database.ts';
import { postgresGatewayStore } from '../src/store/postgres/gateway/store.ts';
import { migratePostgres } from '../src/store/postgres/migrate.ts';
import { sqliteGatewayStore } from '../src/store/sqlite/index.ts';
import { PostgresServer, postgresPrograms } from './support/cluster/postgres-server.ts';
import type { LeasedQueue } from './support/leased-queue.ts';
import { freePort, isInstalled } from './support/proxies/front-ends.ts';
import { redisStream } from './support/redis-stream.ts';
import { type BenchResult, median, round } from './support/result.ts';

const PROGRAMS = 16;
const ROUNDS = 3;
/** Items of a round by batch size. */
const ITEMS: Readonly<Record<number, number>> = { 1: 1000, 10: 5000, 100: 10_000 };
const BODY = JSON.stringify({ action: 'opened', text: 'x'.repeat(950) });
const TOKEN = 'bench-token';
const QUEUE = { namespaceId: 'default', queue: 'bench' };

/** Items leased and acknowledged per second, by programs that repeat both calls. */
export async function run(): Promise<BenchResult> {
  const opened: LeasedQueue[] = [];
  const rates = new Map<string, number[]>();
  const cleanUps: Array<() => Promise<unknown>> = [];
  try {
    opened.push(await sqliteQueue());
    if (isInstalled('redis-server', '--version', 'redis-server'))
      opened.push(await redisStream(await freePort(), BODY));
    if (postgresPrograms()) {
      const [ours, theirs] = [await PostgresServer.start(), await PostgresServer.start()];
      cleanUps.push(
        () => ours.remove(),
        () => theirs.remove(),
      );
      opened.push(await postgresQueue(ours.url()), await bossQueue(theirs.url()));
    }
    for (let n = 0; n < ROUNDS; n++)
      for (const [max, items] of Object.entries(ITEMS))
        for (const queue of opened) {
          const key = `${queue.name}:${max}`;
          rates.set(key, [...(rates.get(key) ?? []), await measure(queue, Number(max), items)]);
        }
  } finally {
    for (const queue of opened) await queue.close();
    for (const cleanUp of cleanUps) await cleanUp();
  }
  const rate = (name: string, max: number): number => round(median(rates.get(`${name}:${max}`)!));
  return {
    name: `Leases of a queue, 1 KB, ${PROGRAMS} programs`,
    rows: opened.map(({ name }) => ({
      queue: name,
      'items/s, 1 a call': rate(name, 1),
      '10 a call': rate(name, 10),
      '100 a call': rate(name, 100),
    })),
    note: `Items leased and acknowledged per second, in two calls. Medians of ${ROUNDS} interleaved rounds. svc: one gateway, by HTTP with authentication. Redis Streams (XREADGROUP, XACK) and pg-boss (fetch, complete) by their own protocols, without HTTP. Every commit reaches the disk (Redis: appendfsync always). All processes share the cores.`,
  };
}

async function measure(queue: LeasedQueue, max: number, items: number): Promise<number> {
  await queue.fill(items);
  let handled = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: PROGRAMS }, async (_, program) => {
      while (handled < items) {
        const more = await queue.handle(max, program);
        handled += more;
      }
    }),
  );
  return (handled / (performance.now() - startedAt)) * 1000;
}

async function sqliteQueue(): Promise<LeasedQueue> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  await mkdir(join(folder, '.svc'));
  const options = { dataDir: join(folder, '.svc'), clock: systemClock, logger: silentLogger };
  const store = await sqliteGatewayStore(options);
  return leasesByHttp('svc on SQLite', {
    folder,
    config: {},
    store: store.queues,
    close: () => store.close(),
  });
}

async function postgresQueue(url: string): Promise<LeasedQueue> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-bench' });
  await migratePostgres(database);
  const store = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
  const close = () => store.close();
  return leasesByHttp('svc on PostgreSQL', {
    folder,
    config: { store: { url } },
    store: store.queues,
    close,
  });
}

interface HttpQueue {
  folder: string;
  config: object;
  /** Opened by this process too, to fill the queue quickly. */
  store: QueueStore;
  close(): Promise<void>;
}

async function leasesByHttp(name: string, { folder, config, store, close }: HttpQueue): Promise<LeasedQueue> {
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config));
  const port = await freePort();
  const gateway = await startGateway(folder, port);
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: PROGRAMS });
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const call = async (verb: string, body: object): Promise<{ items: Array<{ leaseId: string }> }> => {
    const path = `/api/v1/queues/${QUEUE.queue}/${verb}`;
    const answer = await pool.request({ method: 'POST', path, headers, body: JSON.stringify(body) });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${name} answered ${answer.statusCode}: ${text}`);
    return JSON.parse(text);
  };
  let next = 0;
  return {
    name,
    async fill(count) {
      const item = { ...QUEUE, deliveryId: null, headers: '[]', orderKey: null, receivedAt: Date.now() };
      const body = Buffer.from(BODY);
      await Promise.all(
        Array.from({ length: count }, () => store.put({ ...item, id: `item-${next++}`, body })),
      );
    },
    async handle(max) {
      const { items } = await call('lease', { max });
      if (items.length > 0) await call('ack', { leaseIds: items.map(({ leaseId }) => leaseId) });
      return items.length;
    },
    async close() {
      await pool.close();
      gateway.kill();
      await close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startGateway(folder: string, port: number): Promise<ChildProcess> {
  const file = join(import.meta.dirname, 'support/gateway-process.ts');
  const child = spawn(process.execPath, [file, folder, String(port), TOKEN], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
  });
  return child;
}

async function bossQueue(url: string): Promise<LeasedQueue> {
  const boss = new PgBoss({ connectionString: url });
  boss.on('error', console.error);
  await boss.start();
  await boss.createQueue('bench');
  const data = JSON.parse(BODY) as object;
  return {
    name: 'pg-boss fetch, complete',
    async fill(count) {
      await boss.insert(
        'bench',
        Array.from({ length: count }, () => ({ data })),
      );
    },
    async handle(max) {
      const jobs = await boss.fetch('bench', { batchSize: max });
      if (jobs.length > 0)
        await boss.complete(
          'bench',
          jobs.map(({ id }) => id),
        );
      return jobs.length;
    },
    close: () => boss.stop({ graceful: false }),
  };
}

if (import.meta.main) console.log(JSON.stringify(await run(), null, 2));
