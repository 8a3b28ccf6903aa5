import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import { days } from '../src/kit/time/duration.ts';
import type { DeliveryCursor, DeliveryFilter, GatewayStore } from '../src/store/ports/index.ts';
import { sqliteGatewayStore } from '../src/store/sqlite/index.ts';
import { type LongestBlock, longestBlock, threadCpuMs } from './support/event-loop.ts';
import { fillOldStore } from './support/growth-store.ts';
import { type BenchResult, median, quantile, round } from './support/result.ts';
import { waitUntilIndexed } from './support/text-index.ts';

const STARTS = 5;
const PAGES = 20;
const PAGE_AIM_MS = 50;
const BODY_BYTES = 500;
/** `--small`: a tenth, for quick checks. `--million`: half. `--no-text`: without text searches, whose index takes minutes. */
const sizes = (flags: ReadonlySet<string>) =>
  flags.has('--small')
    ? [0, 35_000, 200_000]
    : flags.has('--million')
      ? [0, 1_000_000]
      : [0, 348_000, 2_000_000];

/** Measures the cost of stored deliveries: gateway start, filtered lists, and sweeps. */
export async function run(flags: ReadonlySet<string> = new Set()): Promise<BenchResult> {
  const rows: BenchResult['rows'] = [];
  const listed = sizes(flags).at(-1)!;
  for (const size of sizes(flags)) {
    const folder = await mkdtemp(join(tmpdir(), 'svc-growth-'));
    try {
      await writeFile(join(folder, 'svc.config.json'), '{}');
      const dataDir = join(folder, '.svc');
      await fillOldStore(dataDir, size, BODY_BYTES);
      const stored = size.toLocaleString('en-US');
      rows.push({
        what: 'gateway ready, first start after the upgrade',
        stored,
        value: startValue([await measureStart(folder)]),
      });
      await waitUntilListed(dataDir);
      const starts: Start[] = [];
      for (let n = 0; n < STARTS; n++) starts.push(await measureStart(folder));
      rows.push({ what: 'gateway ready', stored, value: startValue(starts) });
      if (size === listed) rows.push(...(await measureStore(dataDir, stored, !flags.has('--no-text'))));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  return {
    name: 'Growth',
    rows,
    note: `Bodies of ${BODY_BYTES} bytes, five plugins with four events. Medians of ${STARTS} starts of a gateway process, killed after each: time / CPU time of the process. Lists: ${PAGES} pages of 50 each, text index complete, median / 99th percentile of the time, then of the thread's CPU time; aim: a median under ${PAGE_AIM_MS} ms. Blocks: maximum delay of a 1 ms timer / maximum CPU time of the thread between two timer calls.`,
  };
}

interface Start {
  wallMs: number;
  /** CPU time of the whole process. */
  cpuMs: number;
}

const startValue = (starts: Start[]): string =>
  `${round(median(starts.map(({ wallMs }) => wallMs)))} / ${median(starts.map(({ cpuMs }) => cpuMs))} ms`;

/** Starts the process, waits until it is ready, and kills it. */
async function measureStart(folder: string): Promise<Start> {
  const program = fileURLToPath(new URL('./support/gateway-process.ts', import.meta.url));
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, folder, '0', 'bench-token-of-enough-characters'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text)));
    child.once('exit', () => reject(new Error('The gateway exited before it was ready.')));
  });
  const wallMs = performance.now() - startedAt;
  child.kill('SIGKILL');
  await exited;
  return { wallMs, cpuMs: Number(line.split(' ')[1]) };
}

function openStore(dataDir: string): Promise<GatewayStore> {
  return sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger, shared: false });
}

/** Waits until the lists contain all deliveries of the old version. */
async function waitUntilListed(dataDir: string): Promise<void> {
  const store = await openStore(dataDir);
  await store.inbox.list('default', { limit: 1, after: { receivedAt: 0, position: 0 } });
  await store.close();
}

const FILTERS: Array<[string, DeliveryFilter]> = [
  ['all', {}],
  ['status, frequent', { status: ['succeeded'] }],
  ['status, 1 in 1,000', { status: ['failed'] }],
  ['status, 1 in 200,000', { status: ['dead'] }],
  ['plugin', { pluginId: 'plugin-3' }],
  ['event', { event: 'event-2' }],
  ['plugin, event and rare status', { pluginId: 'plugin-2', event: 'event-3', status: ['failed'] }],
  ['time', { since: Date.now() - days(1) }],
  ['time and rare status', { since: Date.now() - days(2), status: ['failed'] }],
  ['text, frequent', { search: 'EUR' }],
  ['text, in one', { search: '"ord_123457"' }],
  ['text, 1 in 10,000', { search: '"cus_4711"' }],
  ['text and rare status', { search: 'A-7', status: ['failed'] }],
  ['text, in none', { search: 'no such text' }],
];

export async function measureStore(
  dataDir: string,
  stored: string,
  withText: boolean,
): Promise<BenchResult['rows']> {
  const store = await openStore(dataDir);
  const { inbox } = store;
  const rows: BenchResult['rows'] = [];
  if (withText) {
    const begun = performance.now();
    await waitUntilIndexed(dataDir, await inbox.latest());
    rows.push({
      what: 'text index complete, after',
      stored,
      value: `${round((performance.now() - begun) / 1000)} s`,
    });
  }
  const slow: string[] = [];
  const blocked = await longestBlock(async () => {
    for (const [what, filter] of FILTERS) {
      if (filter.search !== undefined && !withText) continue;
      const took = await pageTimes(store, filter);
      if (median(took.map(({ wallMs }) => wallMs)) > PAGE_AIM_MS) slow.push(what);
      rows.push({
        what: `page of 50: ${what}`,
        stored,
        value: `${timesOf(took.map(({ wallMs }) => wallMs))}, ${timesOf(took.map(({ cpuMs }) => cpuMs))} ms`,
      });
    }
  });
  rows.push({ what: 'longest block: lists', stored, value: blockValue(blocked) });
  rows.push({ what: `pages over ${PAGE_AIM_MS} ms`, stored, value: slow.join('; ') || 'none' });
  rows.push(...(await measureSweeps(store, dataDir, stored)));
  await store.close();
  return rows;
}

const blockValue = ({ wallMs, cpuMs }: LongestBlock): string => `${round(wallMs, 1)} / ${round(cpuMs, 1)} ms`;

const timesOf = (took: number[]): string => `${round(median(took), 1)} / ${round(quantile(took, 0.99), 1)}`;

interface PageTime {
  wallMs: number;
  /** CPU time of this thread, which runs the queries. */
  cpuMs: number;
}

async function pageTimes({ inbox }: GatewayStore, filter: DeliveryFilter): Promise<PageTime[]> {
  const took: PageTime[] = [];
  for (let before: DeliveryCursor | undefined; took.length < PAGES; ) {
    const [startedAt, cpuBefore] = [performance.now(), threadCpuMs()];
    const page = await inbox.list('default', { ...filter, limit: 50, before });
    took.push({ wallMs: performance.now() - startedAt, cpuMs: threadCpuMs() - cpuBefore });
    before = page.next ?? undefined;
    // Each page is a separate request.
    await turn();
  }
  return took;
}

const OPEN_ROWS = 50_000;

async function measureSweeps(
  store: GatewayStore,
  dataDir: string,
  stored: string,
): Promise<BenchResult['rows']> {
  const { inbox } = store;
  const now = Date.now();
  const other = new Sqlite(join(dataDir, 'svc.db'), { timeout: 10_000 });
  other
    .prepare(`update delivery set status = 'retrying', next_attempt_at = ? where position <= ${OPEN_ROWS}`)
    .run(now + days(1));
  other.close();
  const sweeps: Array<[string, () => Promise<unknown>]> = [
    [
      `${OPEN_ROWS.toLocaleString('en-US')} that wait for a retry read back`,
      async () => {
        for (let after = 0; ; ) {
          const page = await inbox.unfinished(200, after);
          if (page.length === 0) return;
          after = page.at(-1)!.position;
        }
      },
    ],
    ['markers swept', () => repeat(100, () => inbox.prune({ receivedBefore: 0, now, limit: 500 }))],
    ['bodies dropped', () => repeat(40, () => inbox.shrink({ maxBytes: 1, limit: 500 }))],
    ['deliveries pruned', () => repeat(40, () => inbox.prune({ receivedBefore: now, now, limit: 500 }))],
  ];
  const rows: BenchResult['rows'] = [];
  for (const [what, sweep] of sweeps)
    rows.push({ what: `longest block: ${what}`, stored, value: blockValue(await longestBlock(sweep)) });
  return rows;
}

async function repeat(times: number, work: () => Promise<number>): Promise<void> {
  for (let n = 0; n < times && (await work()) > 0; n++);
}
