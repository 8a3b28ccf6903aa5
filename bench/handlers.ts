import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ExecutionRequest, Permissions, PlatformConfig } from '../src/contracts/index.ts';
import { systemRandom } from '../src/kit/security/random.ts';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import { sandboxInForce, WorkerBackend } from '../src/plugins/index.ts';
import { type BenchResult, quantile, round } from './support/result.ts';

const SEQUENTIAL_CALLS = 3000;
const CONCURRENCY = 64;
const CONCURRENT_CALLS = 20_000;
const COLD_STARTS = 7;

/** A webhook-like input of 2 KB. */
const INPUT = {
  action: 'opened',
  issue: { number: 1, title: 'It is slow', body: 'x'.repeat(1850) },
  repository: { full_name: 'octo/hello' },
};

const HANDLERS = `
export const noop = () => ({ ok: true });
export const echo = (_ctx, input) => input;
export const stateful = async (ctx) => ctx.state.get('key');
`;

/** Measures calls of plugin code: warm and sequential (latency), concurrent (throughput), and cold, including process start. */
export async function run(): Promise<BenchResult> {
  const root = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  await writeFile(join(root, 'h.js'), HANDLERS);
  await writeFile(join(root, 'package.json'), '{"type": "module"}');
  const { mode, reason } = await sandboxInForce();
  const sandboxes = mode === 'bwrap' ? (['permission', 'bwrap'] as const) : (['permission'] as const);
  const rows: BenchResult['rows'] = [];
  try {
    for (const sandbox of sandboxes) rows.push(...(await measure(sandbox, root)));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
  const note = 'Input 2 KB; p50 and p99 in ms; the backend and its plugin processes share the machine.';
  return {
    name: 'Handler calls, worker backend',
    rows,
    note: reason ? `${note} No bubblewrap: ${reason}.` : note,
  };
}

async function measure(sandbox: 'permission' | 'bwrap', root: string): Promise<BenchResult['rows']> {
  const backend = new WorkerBackend({
    config: { ...PlatformConfig.parse({}).execution.worker, sandbox },
    services: { state: { get: async () => ({ value: 1 }) } },
    logger: silentLogger,
    clock: systemClock,
    dataDir: join(root, '..', '.svc'),
  });
  try {
    const rows: BenchResult['rows'] = [];
    for (const handler of ['noop', 'echo', 'stateful']) {
      rows.push({
        sandbox,
        what: `${handler}, warm, sequential`,
        ...(await latency(backend, caller(root, handler))),
      });
    }
    rows.push({
      sandbox,
      what: 'noop, 64 concurrent, 2 processes',
      ...(await throughput(backend, caller(root, 'noop'))),
    });
    const shared = caller(root, 'noop', { quotas: { concurrency: CONCURRENCY } });
    rows.push({
      sandbox,
      what: 'noop, 64 concurrent, concurrency 64',
      ...(await throughput(backend, shared)),
    });
    rows.push({ sandbox, what: 'noop, cold start included', ...(await coldStart(backend, root)) });
    return rows;
  } finally {
    await backend.close();
  }
}

type MakeRequest = () => ExecutionRequest;

function caller(root: string, handler: string, permissions: object = {}): MakeRequest {
  const random = systemRandom();
  const parsed = Permissions.parse(permissions);
  return () => ({
    executionId: random.uuid(),
    plugin: { id: 'bench', version: '1.0.0', root },
    handler: `h.js#${handler}`,
    host: 'webhook',
    hostContext: {},
    input: INPUT,
    params: {},
    user: null,
    tenantId: 'default',
    requestId: 'bench',
    traceId: 'bench',
    config: {},
    permissions: parsed,
    schemas: {},
    timeoutMs: 60_000,
  });
}

async function latency(backend: WorkerBackend, make: MakeRequest): Promise<Record<string, number>> {
  for (let i = 0; i < SEQUENTIAL_CALLS / 3; i++) await backend.run(make());
  const times: number[] = [];
  const startedAt = performance.now();
  for (let i = 0; i < SEQUENTIAL_CALLS; i++) times.push(await timed(() => backend.run(make())));
  return summary(times, performance.now() - startedAt);
}

async function throughput(backend: WorkerBackend, make: MakeRequest): Promise<Record<string, number>> {
  const times: number[] = [];
  let left = CONCURRENT_CALLS;
  async function work(): Promise<void> {
    while (left-- > 0) times.push(await timed(() => backend.run(make())));
  }
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return summary(times, performance.now() - startedAt);
}

/** Each version of a plugin gets its own processes, so a call of a new version is a cold start. */
async function coldStart(backend: WorkerBackend, root: string): Promise<Record<string, number>> {
  const make = caller(root, 'noop');
  const times: number[] = [];
  const startedAt = performance.now();
  for (let i = 0; i < COLD_STARTS; i++) {
    const request = make();
    request.plugin = { ...request.plugin, version: `1.0.${i + 1}` };
    times.push(await timed(() => backend.run(request)));
  }
  return summary(times, performance.now() - startedAt);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function summary(times: number[], tookMs: number): Record<string, number> {
  return {
    p50: round(quantile(times, 0.5), 3),
    p99: round(quantile(times, 0.99), 3),
    'calls/s': round(times.length / (tookMs / 1000)),
  };
}

if (import.meta.main) {
  const { name, rows, note } = await run();
  console.log(name);
  console.table(rows);
  console.log(note);
}
