import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { provisionWebhook } from '../src/contracts/index.ts';
import { createClient } from '../src/http/client.ts';
import { packageRoot } from '../src/kit/files/paths.ts';
import { lineBlocks } from '../src/kit/streams/line-blocks.ts';
import { withoutEvents } from '../src/kit/telemetry/analytics.ts';
import { days } from '../src/kit/time/duration.ts';
import type { EventFilter, KeptEvent, TelemetryStore } from '../src/store/ports/telemetry.ts';
import { sqliteTelemetryStore } from '../src/store/sqlite/telemetry/store.ts';
import { startTelemetryWriter } from '../src/store/telemetry/writer.ts';
import { openLogFile } from '../src/supervisor/log-file.ts';
import { generateLoad } from './support/load.ts';
import { pacedLoad } from './support/paced-load.ts';
import { type BenchResult, median, quantile, round } from './support/result.ts';

const EVENTS = Number(process.env.BENCH_EVENTS ?? 200_000);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 10);
const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 1500);
/** `costs` or `queries`: inserting ten million events takes an hour on a small machine, the costs a few minutes. */
const PART = process.env.BENCH_PART;
const QUERIES = 40;
const CONNECTIONS = 32;
// Fixed rates: at full speed, the faster side would also handle more requests per wakeup.
const PER_SECOND = { 'proxied request': 3000, 'webhook delivery': 500 } as const;
const WARM_UP_MS = 4000;
const TOKEN = 'a-static-token-of-the-benchmark';

/** Measures the cost of telemetry per request and delivery, and queries over a year of events. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-telemetry-'));
  try {
    const costs = PART === 'queries' ? [] : await measureCosts(folder);
    const queries = PART === 'costs' ? [] : await measureQueries(folder);
    return {
      name: 'Telemetry',
      rows: [...costs, ...queries],
      note: `CPU time of the gateway's process, medians of ${ROUNDS} interleaved rounds of ${ROUND_MS} ms at ${PER_SECOND['proxied request']} requests and ${PER_SECOND['webhook delivery']} deliveries a second on ${CONNECTIONS} connections; the overhead is the median of the rounds' own ratios. "Supervisor" is its CPU time per log line of that load, almost all of which exceed the rate limit for storage. Queries: ${EVENTS.toLocaleString('en-US')} events of 400 days, ${QUERIES} ranges each.`,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Target {
  child: ChildProcess;
  port: number;
  secret: string;
  /** Output of the gateway, for measuring the supervisor; empty if telemetry is off. */
  output: Buffer[];
}

async function measureCosts(folder: string): Promise<BenchResult['rows']> {
  const children: ChildProcess[] = [];
  try {
    const upstream = await startProgram(children, 'proxies/upstream.ts', 'stdout');
    const targets = {
      on: await startGateway(children, upstream.port, 'on'),
      off: await startGateway(children, upstream.port, 'off'),
    };
    const rows: BenchResult['rows'] = [];
    for (const what of Object.keys(PER_SECOND) as What[]) {
      for (const target of Object.values(targets)) await warmUp(target, what);
      const cpu = { on: [] as number[], off: [] as number[] };
      for (let turn = 0; turn < ROUNDS; turn++) {
        for (const mode of turn % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
          const us = await cpuPerCall(targets[mode], what);
          cpu[mode].push(us);
        }
      }
      const ratios = cpu.on.map((on, round) => on / cpu.off[round]! - 1);
      rows.push({
        what: `CPU of a ${what}`,
        off: `${round(median(cpu.off), 1)} us`,
        on: `${round(median(cpu.on), 1)} us`,
        overhead: `${round(median(ratios) * 100, 1)} %`,
        aim: 'under 15 %, better 10 %',
      });
    }
    rows.push(await supervisorCost(folder, Buffer.concat(targets.on.output)));
    return rows;
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}

async function startGateway(
  children: ChildProcess[],
  upstreamPort: number,
  mode: 'on' | 'off',
): Promise<Target> {
  const { child, port } = await startProgram(
    children,
    'telemetry-gateway.ts',
    'stderr',
    `http://127.0.0.1:${upstreamPort}`,
    mode,
    TOKEN,
  );
  const output: Buffer[] = [];
  let kept = 0;
  child.stdout!.on('data', (chunk: Buffer) => {
    if (kept < 32 * 1024 * 1024) output.push(chunk);
    kept += chunk.length;
  });
  const client = createClient({
    url: `http://127.0.0.1:${port}`,
    peer: 'gateway',
    headers: () => ({ authorization: `Bearer ${TOKEN}` }),
  });
  const body = { pluginId: 'bench', event: 'push' } as never;
  const { secret } = await client.call(provisionWebhook, { body });
  return { child, port, secret, output };
}

async function startProgram(
  children: ChildProcess[],
  file: string,
  portOn: 'stdout' | 'stderr',
  ...args: string[]
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, [join(packageRoot, 'bench/support', file), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const port = await new Promise<number>((resolve, reject) => {
    child[portOn]!.once('data', (text) => resolve(Number(text)));
    child.once('exit', (code) => reject(new Error(`${file} exited with ${code}`)));
  });
  return { child, port };
}

type What = keyof typeof PER_SECOND;

function requestText({ secret }: Target, what: What): string {
  return what === 'proxied request'
    ? `GET /api/v1/plugins/bench/items?page=1 HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`
    : `POST /webhooks/bench/push HTTP/1.1\r\nhost: 127.0.0.1\r\nx-svc-namespace: default\r\nx-token: ${secret}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
}
/** Runs at full speed until code is compiled; throws unless all responses are 200. */
async function warmUp(target: Target, what: What): Promise<void> {
  const text = requestText(target, what);
  const { statuses } = await generateLoad({
    port: target.port,
    connections: CONNECTIONS,
    durationMs: WARM_UP_MS,
    request: () => text,
  });
  if (Object.keys(statuses).join() !== '200')
    throw new Error(`The gateway answered ${JSON.stringify(statuses)}`);
}

async function cpuPerCall(target: Target, what: What): Promise<number> {
  const pid = target.child.pid!;
  const text = requestText(target, what);
  const perSecond = PER_SECOND[what];
  const before = cpuMs(pid);
  await pacedLoad({
    port: target.port,
    connections: CONNECTIONS,
    perSecond,
    durationMs: ROUND_MS,
    request: () => text,
  });
  return ((cpuMs(pid) - before) * 1e6) / (perSecond * ROUND_MS);
}

/** CPU time of the supervisor for a service's log lines, replayed: split, written to the file, passed to the thread. */
async function supervisorCost(folder: string, output: Buffer): Promise<BenchResult['rows'][number]> {
  const lines = output.toString('latin1').split('\n').length - 1;
  const writer = startTelemetryWriter({
    dataDir: folder,
    postgresUrl: null,
    retention: { logsDays: 7, analyticsDays: 400, telemetryMaxBytes: 1e9 },
    onDropped: () => {},
  });
  await writer.flush();
  const file = openLogFile(join(folder, 'gateway.log'));
  const blocks = lineBlocks((block) => {
    writer.push('gateway', block);
    file.write(withoutEvents(block));
  });
  const before = process.cpuUsage();
  for (let at = 0; at < output.length; at += 65_536) {
    blocks.push(output.subarray(at, at + 65_536));
    if (at % (65_536 * 32) === 0) await writer.flush();
  }
  await writer.flush();
  const { user, system } = process.cpuUsage(before);
  await writer.close();
  file.close();
  return { what: 'Supervisor, per log line', on: `${round((user + system) / lines, 2)} us` };
}

async function measureQueries(folder: string): Promise<BenchResult['rows']> {
  const store = await sqliteTelemetryStore({ dataDir: folder });
  const now = Date.now();
  const start = now - days(400);
  const startedAt = performance.now();
  for (let done = 0; done < EVENTS; done += 5000) {
    const events = Array.from({ length: Math.min(5000, EVENTS - done) }, (_, i) =>
      eventAt(start, done + i, now),
    );
    await store.append({ logs: [], events, counts: {} });
  }
  const insertUs = ((performance.now() - startedAt) * 1000) / EVENTS;
  const rows: BenchResult['rows'] = [{ what: 'Append an event (batched)', on: `${round(insertUs, 1)} us` }];
  for (const [what, query] of Object.entries(queriesOf(store))) {
    const took: number[] = [];
    for (let n = 0; n < QUERIES; n++) {
      const from = start + ((now - start) * n) / QUERIES / 2 + 1234 * n;
      const begun = performance.now();
      await query({ from, to: now - 4321 * n, ...(n % 2 === 0 ? { tenantId: `tenant${n % 5}` } : {}) });
      took.push(performance.now() - begun);
    }
    rows.push({
      what,
      on: `p50 ${round(median(took), 1)} ms`,
      off: `p95 ${round(quantile(took, 0.95), 1)} ms`,
    });
  }
  await store.close();
  const { size } = await stat(join(folder, 'telemetry.db'));
  rows.push({ what: 'Disk space per event', on: `${round(size / EVENTS)} bytes` });
  return rows;
}

function queriesOf(store: TelemetryStore): Record<string, (filter: EventFilter) => Promise<unknown>> {
  const page = { limit: 100, offset: 0 };
  return {
    'events: the newest of a range': (filter) => store.events(filter, page),
    'events: of one type': (filter) => store.events({ ...filter, type: 'type7' }, page),
    'events: page 50 of one type': (filter) =>
      store.events({ ...filter, type: 'type7' }, { limit: 100, offset: 5000 }),
    'stats: by type, source and actor': (filter) => store.stats(filter),
    'daily: by type': (filter) => store.daily(filter),
  };
}

function eventAt(start: number, index: number, end: number): KeptEvent {
  const ts = Math.floor(start + ((end - start) * index) / EVENTS);
  return {
    event: {
      id: `01890000-0000-7000-8000-${String(index).padStart(12, '0')}`,
      type: `type${index % 12}`,
      source: { product: index % 4 === 0 ? 'plugin' : 'svc', version: '1.0.0' },
      runId: `run${index % 1000}`,
      actor: { type: 'user', id: `user${index % 20}` },
      ctx: { tenantId: `tenant${index % 5}`, host: 'rest' },
      payload: { pluginId: 'plugin', commandId: 'command', durationMs: index % 500, exitCode: 0 },
    },
    service: 'rest',
    ts,
    ingestTs: ts,
    tenantId: `tenant${index % 5}`,
    occurrences: 1,
    keep: true,
  };
}

/** Total CPU time of the process in ms; the kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(), null, 2));
  process.exit(0);
}
