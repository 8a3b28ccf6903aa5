import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { gateway } from '../src/daemons/gateway/index.ts';
import { createPeers } from '../src/daemons/peers.ts';
import { rest } from '../src/daemons/rest/index.ts';
import { startDaemon } from '../src/daemons/run-daemon.ts';
import { benchDaemonOptions } from './support/bench-gateway.ts';
import { type BenchResult, median, quantile, round } from './support/result.ts';

const ROUNDS = 5;
const CALLS = 1000;
const CLIENTS = 8;
const TOKEN = 'bench-token';
const NEWEST = '2026-07-28';
const INPUT = { order: 'o-1', note: 'x'.repeat(900) };
const UNLIMITED = 100_000_000;

const CONFIG = {
  plugins: ['./plugin'],
  gateway: {
    rateLimit: { perTokenPerMinute: UNLIMITED, perTenantPerMinute: UNLIMITED, perIpPerMinute: UNLIMITED },
    mcp: { callsPerMinute: UNLIMITED, concurrentCalls: 64 },
  },
};

interface Way {
  path: string;
  body: string;
  headers?: Record<string, string>;
}

const toolCall = (_meta: object): string =>
  JSON.stringify({
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'bench_ship', arguments: INPUT, ...(Object.keys(_meta).length > 0 ? { _meta } : {}) },
  });

const WAYS: Readonly<Record<string, Way>> = {
  'REST: POST /api/v1/commands/bench/ship': {
    path: '/api/v1/commands/bench/ship',
    body: JSON.stringify({ input: INPUT }),
  },
  [`/mcp: tools/call, ${NEWEST}`]: {
    path: '/mcp',
    body: toolCall({
      'io.modelcontextprotocol/protocolVersion': NEWEST,
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }),
    headers: {
      'mcp-protocol-version': NEWEST,
      'mcp-method': 'tools/call',
      'mcp-name': 'bench_ship',
    },
  },
  '/mcp: tools/call, 2025-11-25': { path: '/mcp', body: toolCall({}) },
};

/** Calls the same command through `/mcp` and over REST, both at the gateway, in turn. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  await writePlugin(join(folder, 'plugin'));
  const peers = createPeers();
  const options = benchDaemonOptions({ folder, config: CONFIG, token: TOKEN, peers });
  const api = await startDaemon(rest, options);
  peers.set({ rest: api.url });
  const own = await startDaemon(gateway, options);
  const pool = new Pool(own.url, { connections: CLIENTS });
  try {
    return await measure(pool);
  } finally {
    await pool.close();
    await own.close();
    await api.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(pool: Pool): Promise<BenchResult> {
  const rates = new Map<string, number[]>();
  const times = new Map<string, number[]>();
  const cpu = new Map<string, number[]>();
  const add = (to: Map<string, number[]>, name: string, ...values: number[]): void => {
    const known = to.get(name);
    if (known) known.push(...values);
    else to.set(name, values);
  };
  for (const way of Object.values(WAYS)) await callAll(pool, way, CALLS / 2);
  for (let n = 0; n < ROUNDS; n++)
    for (const [name, way] of Object.entries(WAYS)) {
      const cpuBefore = process.cpuUsage();
      const startedAt = performance.now();
      add(times, name, ...(await callAll(pool, way, CALLS)));
      add(rates, name, (CALLS / (performance.now() - startedAt)) * 1000);
      const { user, system } = process.cpuUsage(cpuBefore);
      add(cpu, name, (user + system) / CALLS / 1000);
    }
  const [first] = Object.keys(WAYS);
  const base = rates.get(first!)!;
  return {
    name: `Calls of a command by agents, ${CLIENTS} clients`,
    rows: Object.keys(WAYS).map((name) => ({
      way: name,
      'calls/s': round(median(rates.get(name)!)),
      'p50 ms': round(quantile(times.get(name)!, 0.5), 1),
      'p99 ms': round(quantile(times.get(name)!, 0.99), 1),
      'x REST': round(median(rates.get(name)!.map((rate, n) => rate / base[n]!)), 2),
      'CPU a call, ms': round(median(cpu.get(name)!), 2),
    })),
    note: `Medians of ${ROUNDS} interleaved rounds of ${CALLS} calls with 1 KB; "x REST" is the median of the ratios of a round. The gateway, the REST service and the client share one process and its CPU time; the plugin has its own. A call through /mcp also writes an entry of the audit log, which a call over REST does not.`,
  };
}

/** Returns the time of each call in ms. */
async function callAll(pool: Pool, way: Way, calls: number): Promise<number[]> {
  const times: number[] = [];
  let left = calls;
  async function work(): Promise<void> {
    while (left-- > 0) {
      const startedAt = performance.now();
      await call(pool, way);
      times.push(performance.now() - startedAt);
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, work));
  return times;
}

async function call(pool: Pool, { path, body, headers = {} }: Way): Promise<void> {
  const reply = await pool.request({
    ...{ path, method: 'POST', body },
    headers: {
      ...{ authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...{ accept: 'application/json, text/event-stream', ...headers },
    },
  });
  const text = await reply.body.text();
  if (reply.statusCode !== 200 || !text.includes('"shipped"'))
    throw new Error(`${path} answered ${reply.statusCode}: ${text.slice(0, 300)}`);
}

async function writePlugin(folder: string): Promise<void> {
  await mkdir(folder);
  const mcp = { expose: true, title: 'Ship', description: 'Ships an order.' };
  const manifest = {
    ...{ schema: 'svc.plugin/3', id: 'bench', version: '1.0.0' },
    commands: [{ id: 'ship', handler: 'h.js#ship', mcp }],
  };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'package.json'), '{"name":"bench","version":"1.0.0","type":"module"}');
  await writeFile(join(folder, 'h.js'), 'export const ship = (_ctx, { order }) => ({ shipped: order });\n');
}
