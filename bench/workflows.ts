import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Definitions } from '../src/daemons/workflow/domain/definition/definitions.ts';
import { setStep } from '../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { openDatabase, sqliteWorkflowStore, WORKFLOW_FILE } from '../src/store/sqlite/index.ts';
import { WORKFLOW_MIGRATIONS } from '../src/store/sqlite/workflow/schema.ts';
import { otherEngines } from './support/other-engines.ts';
import { type BenchResult, quantile, round } from './support/result.ts';
import { startWorkflowDaemon } from './support/workflow-daemon.ts';
import { type BenchEngine, openEngine } from './support/workflow-engine.ts';

const CLIENTS = 50;
const RUNS = 3000;
const ROUNDS = 3;

/** A way to run three trivial steps; `once` resolves when a run has ended. */
interface Contender {
  name: string;
  once(): Promise<void>;
  runs?: number;
  /** CPU time, if it runs outside this process. */
  cpuUs?(): number;
  close(): Promise<void>;
}

/** Runs of three trivial steps by fifty concurrent clients, with durable writes (`synchronous=FULL`). */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  try {
    const { contenders: others, skipped } = await otherEngines();
    const open = [
      () => engineContender(folder, 'set steps, in place', 'set'),
      () => engineContender(folder, 'no-op steps, each durable before the next', 'noop'),
      () => engineContender(folder, 'no-op steps that may not repeat', 'once'),
      () => daemonContender(folder, 'set steps, through HTTP', { uses: 'set' }),
      () => daemonContender(folder, 'plugin handlers in warm workers', { uses: 'bench/noop' }),
      ...others,
    ];
    const rows: BenchResult['rows'] = [];
    for (const make of open) rows.push(await measure(await make()));
    const large = process.env.BENCH_LARGE
      ? await largeTables(folder)
      : { rows: [], note: 'BENCH_LARGE=1 adds large tables.' };
    rows.push(...large.rows);
    const idle = await enqueueToStart(folder);
    return {
      name: 'Workflow runs of three steps, durable',
      rows,
      note: `${CLIENTS} clients, best of ${ROUNDS} rounds. Enqueue to start of one job on an idle queue: p50 ${round(quantile(idle, 0.5), 2)} ms, p99 ${round(quantile(idle, 0.99), 2)} ms. ${large.note} ${skipped.join(' ')}`,
    };
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function measure({
  name,
  once,
  close,
  cpuUs,
  runs = RUNS,
}: Contender): Promise<BenchResult['rows'][number]> {
  let best = { rate: 0, times: [] as number[] };
  let cheapest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const times: number[] = [];
    let left = runs;
    const cpuBefore = cpuUs?.() ?? 0;
    const startedAt = performance.now();
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (left-- > 0) {
          const begunAt = performance.now();
          await once();
          times.push(performance.now() - begunAt);
        }
      }),
    );
    const rate = runs / ((performance.now() - startedAt) / 1000);
    if (rate > best.rate) best = { rate, times };
    if (cpuUs) cheapest = Math.min(cheapest, (cpuUs() - cpuBefore) / runs);
  }
  await close();
  return {
    engine: name,
    'runs/s': round(best.rate),
    'p50 ms': round(quantile(best.times, 0.5), 1),
    'p99 ms': round(quantile(best.times, 0.99), 1),
    ...(cpuUs ? { 'CPU us/run': round(cheapest) } : {}),
  };
}

async function openSqliteEngine(folder: string, existing?: string): Promise<BenchEngine> {
  const dataDir = existing ?? (await mkdtemp(join(folder, 'engine-')));
  return openEngine(await sqliteWorkflowStore({ dataDir, logger: silentLogger }));
}

async function engineContender(
  folder: string,
  name: string,
  uses: string,
  existing?: string,
): Promise<Contender> {
  const bench = await openSqliteEngine(folder, existing);
  const start = bench.starter('workflow', [uses, uses, uses]);
  return {
    name: `svc: ${name}`,
    close: bench.close,
    async once() {
      const id = await start();
      // The run cannot end before this turn, because its end is written in a later one.
      await new Promise<void>((resolve) => bench.ended.set(id, resolve));
    },
  };
}

async function enqueueToStart(folder: string): Promise<number[]> {
  const bench = await openSqliteEngine(folder);
  const start = bench.starter('job', ['noop']);
  const times: number[] = [];
  for (let i = 0; i < 500; i++) {
    const begunAt = performance.now();
    const id = await start();
    const at = new Promise<number>((resolve) => bench.begun.set(id, resolve));
    const done = new Promise<void>((resolve) => bench.ended.set(id, resolve));
    times.push((await at) - begunAt);
    bench.begun.delete(id);
    await done;
  }
  await bench.close();
  return times;
}

const FINISHED = 1_000_000;
const QUEUED = 100_000;

/** Repeats the benchmark over a million finished runs, and measures a start over a hundred thousand queued ones. */
async function largeTables(folder: string): Promise<Pick<BenchResult, 'rows'> & { note: string }> {
  const full = await mkdtemp(join(folder, 'full-'));
  await fill(full, FINISHED, 'succeeded');
  const rows = [
    await measure(await engineContender(folder, `no-op steps, over ${FINISHED} finished runs`, 'noop', full)),
  ];
  const queued = await mkdtemp(join(folder, 'queued-'));
  await fill(queued, QUEUED, 'queued');
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const startedAt = performance.now();
  const bench = await openSqliteEngine(folder, queued);
  const bootMs = performance.now() - startedAt;
  const grownMb = (process.memoryUsage().rss - before) / 1024 ** 2;
  await bench.close();
  return {
    rows,
    note: `With ${QUEUED} queued runs the engine is ready in ${round(bootMs)} ms and holds ${round(grownMb)} MB more.`,
  };
}

/** Inserts rows as written by the service; queued runs refer to a stored definition. */
async function fill(dataDir: string, count: number, status: 'succeeded' | 'queued'): Promise<void> {
  const definitions = new Definitions({ kindOf: () => setStep, find: async () => undefined });
  const { hash, body } = definitions.compile({ id: 'bench', jobs: { main: { steps: [{ uses: 'set' }] } } });
  const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
  await store.close();
  const db = await openDatabase({ file: join(dataDir, WORKFLOW_FILE), migrations: WORKFLOW_MIGRATIONS });
  const isQueued = status === 'queued' ? 1 : 0;
  await db.write(() => {
    db.prepare('insert into definition (hash, workflow_id, body) values (?, ?, ?)').run(hash, 'bench', body);
    db.prepare(`
      with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
      insert into run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, reason, rank, priority, resume_count, stalls,
        trigger_kind, depth, host_id, request_id, trace_id, created_at, finished_at, input)
      select 'run_0' || printf('%09d', i), 'workflow', 'tenant' || (i % 10), 'bench', ?, '${status}', ${isQueued},
        ${isQueued ? "'capacity'" : 'null'}, 0, 0, 0, 0, 'manual', 0, 'bench', 'r', 't', i, ${isQueued ? 'null' : 'i'}, '{}' from n`).run(
      count,
      hash,
    );
    if (isQueued) return;
    db.prepare(`insert into step (run_seq, job_key, idx, status, attempts, output, started_at, attempt_at, finished_at)
      select seq, 'main', i, 'succeeded', 1, '{}', 1, 1, 1 from run, (select 0 as i union all select 1 union all select 2)`).run();
    db.prepare(
      `insert into run_event (run_seq, body) select seq, '[{"at":1,"type":"run.queued"}]' from run`,
    ).run();
  });
  await db.close();
}

/** The complete service, with CPU time per run including its plugin processes. */
async function daemonContender(folder: string, name: string, step: { uses: string }): Promise<Contender> {
  const daemon = await startWorkflowDaemon(folder, step);
  return { name: `svc: ${name}`, runs: RUNS / 3, ...daemon };
}

if (import.meta.main) {
  const { name, rows, note } = await run();
  console.log(name);
  console.table(rows);
  console.log(note);
}
