import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { generateLoad, type LoadReport } from './support/load.ts';
import { cpuUsOf } from './support/process-usage.ts';
import { type BenchResult, median, round } from './support/result.ts';
import {
  EVENTS,
  type Server,
  startAdnanh,
  startBare,
  startOctokit,
  startPlatform,
  type Target,
} from './support/webhook-servers.ts';

const CONNECTIONS = 50;
const ROUNDS = 5;
const ROUND_MS = 3000;
/** Long enough that deferred work of a burst must be done within the round. */
const SUSTAINED_MS = 30_000;
/** CPU share below which a server counts as idle. */
const IDLE_SHARE = 0.05;
const IDLE_SAMPLE_MS = 500;

/** A GitHub-like payload of 2 KB. */
const PAYLOAD = JSON.stringify({
  action: 'opened',
  issue: { number: 1, title: 'It is slow', body: 'x'.repeat(1750) },
  repository: { full_name: 'octo/hello', private: false },
  sender: { login: 'octocat', id: 1 },
});

/** The same payload in a form, as GitHub and Slack send it. */
const FORM = new URLSearchParams({ payload: PAYLOAD }).toString();

function requestTo({ port, secret, path, isForm = false }: Target): () => string {
  const body = isForm ? FORM : PAYLOAD;
  const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: ${type}\r\nx-svc-namespace: default\r\n` +
    `x-github-event: issues\r\nx-hub-signature-256: sha256=${signature}\r\ncontent-length: ${body.length}\r\n`;
  const stem = Date.now().toString(36);
  let n = 0;
  return () => `${head}x-github-delivery: ${stem}-${port}-${path.length}-${n++}\r\n\r\n${body}`;
}

interface Round extends LoadReport {
  cpuUs: number;
}

async function measure(target: Target, durationMs: number): Promise<Round> {
  const before = cpuUsOf(target.pid);
  const request = requestTo(target);
  const report = await generateLoad({ port: target.port, connections: CONNECTIONS, durationMs, request });
  const cpuUs = (cpuUsOf(target.pid) - before) / report.answered;
  const wrong = Object.keys(report.statuses).filter((status) => !status.startsWith('2'));
  if (wrong.length > 0) throw new Error(`${target.name} answered ${JSON.stringify(report.statuses)}`);
  return { ...report, cpuUs };
}

/** Waits for handlers of an async round, so that they do not run in the next round. */
async function untilIdle(pid: number): Promise<void> {
  for (;;) {
    const before = cpuUsOf(pid);
    await sleep(IDLE_SAMPLE_MS);
    if (cpuUsOf(pid) - before < IDLE_SAMPLE_MS * 1000 * IDLE_SHARE) return;
  }
}

/** Accepted deliveries per second in interleaved rounds, with all features and access logging. */
export async function benchmark(): Promise<BenchResult> {
  const servers: Server[] = [];
  const reports = new Map<Target, Round[]>();
  try {
    for (const start of [startBare, startOctokit, startAdnanh, startPlatform]) {
      const server = await start();
      if (server) servers.push(server);
    }
    const targets = servers.flatMap((server) => server.targets);
    for (let round = -1; round < ROUNDS; round++) {
      for (const target of targets) {
        const report = await measure(target, round < 0 ? 1500 : ROUND_MS);
        // The first round warms up.
        if (round >= 0) reports.set(target, [...(reports.get(target) ?? []), report]);
        await untilIdle(target.pid);
      }
    }
    const held = targets.find(({ name }) => name === EVENTS.held)!;
    const sustained = { ...held, name: `${held.name}, ${SUSTAINED_MS / 1000} s continuously` };
    reports.set(sustained, [await measure(sustained, SUSTAINED_MS)]);
  } finally {
    for (const server of servers) await server.stop();
  }
  return {
    name: 'Webhook accepts, 2 KB, HMAC, 50 connections',
    rows: rowsOf(reports),
    note: `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS / 1000} s. Servers run on one core (shared by all services and plugin processes of svc), the load on the other. On hold: deliveries are accepted, but their handlers do not run yet. With svc, each delivery has a unique id, is synced to the write-ahead log before the response, and is logged. It is written to the database between the rounds, except in the last row, where this is part of the round. CPU: per response, of the server process and its running children; for svc, of the gateway.`,
  };
}

function rowsOf(reports: Map<Target, Round[]>): BenchResult['rows'] {
  const bare = [...reports.values()][0]!;
  const of = (rounds: Round[], value: (report: Round) => number): number => median(rounds.map(value));
  const rate = (rounds: Round[]): number => of(rounds, ({ perSecond }) => perSecond);
  return [...reports].map(([{ name }, rounds]) => ({
    server: name,
    'accepts/s': round(rate(rounds)),
    'p50 ms': round(
      of(rounds, ({ p50Ms }) => p50Ms),
      2,
    ),
    'p99 ms': round(
      of(rounds, ({ p99Ms }) => p99Ms),
      2,
    ),
    'x bare': round(rate(rounds) / rate(bare), 3),
    'CPU us': round(of(rounds, ({ cpuUs }) => cpuUs)),
  }));
}

export { benchmark as run };

if (import.meta.main) console.log(JSON.stringify(await benchmark(), null, 2));
