import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PlatformConfig } from '../../src/contracts/index.ts';

/** Engines on other stores for comparison. Those on PostgreSQL are in `cluster/postgres-engines.ts`. They are not dependencies; they take part if they and their servers are available. */
export interface OtherEngine {
  name: string;
  once(): Promise<void>;
  runs?: number;
  close(): Promise<void>;
}

export interface OtherEngines {
  contenders: Array<() => Promise<OtherEngine>>;
  /** Engines not measured, and how to include them. */
  skipped: string[];
}

export async function otherEngines(): Promise<OtherEngines> {
  const contenders: OtherEngines['contenders'] = [];
  const skipped: string[] = [];
  const add = async (
    name: string,
    [packageName, ...beside]: [string, ...string[]],
    variable: string,
    open: (library: never, url: string) => Promise<OtherEngine>,
  ) => {
    const url = process.env[variable];
    const library = await Promise.all([load(packageName), ...beside.map(load)]).then(
      ([found]) => found,
      () => null,
    );
    if (url && library) contenders.push(() => open(library as never, url));
    else
      skipped.push(
        `${name} skipped: set ${variable}, and BENCH_MODULES to a folder with ${[packageName, ...beside].join(' and ')} installed.`,
      );
  };
  await add('BullMQ', ['bullmq', 'ioredis'], 'BENCH_REDIS_URL', bullMq);
  await add('BullMQ (sandboxed)', ['bullmq', 'ioredis'], 'BENCH_REDIS_URL', sandboxedBullMq);
  return { contenders, skipped };
}

/** Loads a package from the folder in BENCH_MODULES. */
async function load(packageName: string): Promise<unknown> {
  const from = join(process.env.BENCH_MODULES ?? '/nowhere', 'package.json');
  return import(pathToFileURL(createRequire(from).resolve(packageName)).href);
}

// biome-ignore lint/suspicious/noExplicitAny: libraries that are not installed have no types
type Library = any;

/** Three jobs, each added by the previous one. The server must run with `appendfsync always`. */
async function bullMq({ Queue, Worker, QueueEvents }: Library, url: string): Promise<OtherEngine> {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port || 6379), maxRetriesPerRequest: null };
  const queue = new Queue('svc-bench', { connection });
  const done = new Map<string, () => void>();
  const worker = new Worker(
    'svc-bench',
    async ({ data }: { data: { run: string; step: number } }) => {
      if (data.step < 3) await queue.add('step', { run: data.run, step: data.step + 1 });
      else {
        done.get(data.run)?.();
        done.delete(data.run);
      }
    },
    { connection, concurrency: 50, removeOnComplete: { count: 1000 } },
  );
  const events = new QueueEvents('svc-bench', { connection });
  let next = 0;
  return {
    name: 'BullMQ, three jobs in a row',
    async once() {
      const run = String(next++);
      const end = new Promise<void>((resolve) => done.set(run, resolve));
      await queue.add('step', { run, step: 1 });
      await end;
    },
    async close() {
      await worker.close();
      await events.close();
      await queue.obliterate({ force: true });
      await queue.close();
    },
  };
}

/**
 * Three jobs, each added when the previous one has completed. Their processor is a file that BullMQ runs in child
 * processes, as many as a plugin of svc has by default.
 */
async function sandboxedBullMq({ Queue, Worker }: Library, url: string): Promise<OtherEngine> {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port || 6379), maxRetriesPerRequest: null };
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-bullmq-'));
  const processor = join(folder, 'noop.cjs');
  await writeFile(processor, 'module.exports = async () => null;\n');
  const concurrency = PlatformConfig.parse({}).execution.worker.maxProcesses;
  const queue = new Queue('svc-bench-sandboxed', { connection });
  const worker = new Worker('svc-bench-sandboxed', processor, {
    ...{ connection, concurrency, removeOnComplete: { count: 1000 } },
  });
  const done = new Map<string, () => void>();
  worker.on('completed', ({ data }: { data: { run: string; step: number } }) => {
    if (data.step < 3) void queue.add('step', { run: data.run, step: data.step + 1 });
    else done.get(data.run)?.();
  });
  let next = 0;
  return {
    name: `BullMQ, three jobs in a row, sandboxed in ${concurrency} processes`,
    runs: 1000,
    async once() {
      const run = String(next++);
      const end = new Promise<void>((resolve) => done.set(run, resolve));
      await queue.add('step', { run, step: 1 });
      await end;
      done.delete(run);
    },
    async close() {
      await worker.close();
      await queue.obliterate({ force: true });
      await queue.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
