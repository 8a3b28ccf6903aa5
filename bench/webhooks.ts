import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../src/kit/paths.ts';
import { generateLoad, type LoadReport } from './support/load.ts';
import { type BenchResult, median, round } from './support/result.ts';

const run = promisify(execFile);
const CONNECTIONS = 50;
const ROUNDS = 5;
const ROUND_MS = 3000;
/** Servers on one core, the load on the other, so that they do not take each other's time. */
const SERVER_CORE = ['taskset', '-c', '0'];
const EVENTS = ['sync', 'async', 'held'] as const;

/** A GitHub-like payload of 2 KB. */
const PAYLOAD = JSON.stringify({
  action: 'opened',
  issue: { number: 1, title: 'It is slow', body: 'x'.repeat(1750) },
  repository: { full_name: 'octo/hello', private: false },
  sender: { login: 'octocat', id: 1 },
});

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'bench',
  version: '1.0.0',
  webhooks: EVENTS.map((event) => ({
    event,
    handler: 'hooks.js#noop',
    async: event !== 'sync',
    auth: { type: 'hmac', header: 'x-hub-signature-256', algorithm: 'sha256', prefix: 'sha256=' },
    idempotencyKey: 'header:x-github-delivery',
    rateLimit: { requestsPerMinute: 1_000_000_000 },
  })),
};

interface Target {
  name: string;
  port: number;
  secret: string;
  path: string;
}

function requestTo({ port, secret, path }: Target): () => string {
  const signature = createHmac('sha256', secret).update(PAYLOAD).digest('hex');
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\nx-svc-namespace: default\r\n` +
    `x-github-event: issues\r\nx-hub-signature-256: sha256=${signature}\r\ncontent-length: ${PAYLOAD.length}\r\n`;
  const stem = Date.now().toString(36);
  let n = 0;
  return () => `${head}x-github-delivery: ${stem}-${port}-${path.length}-${n++}\r\n\r\n${PAYLOAD}`;
}

async function startBare(): Promise<{ target: Target; stop: () => void }> {
  const secret = 'bare-secret';
  const [command, ...args] = [
    ...SERVER_CORE,
    process.execPath,
    join(packageRoot, 'bench/support/bare-hmac-server.ts'),
    secret,
  ];
  const child: ChildProcess = spawn(command!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await new Promise<number>((resolve) =>
    child.stdout!.once('data', (text) => resolve(Number(text))),
  );
  return {
    target: { name: 'bare node:http + HMAC, no store', port, secret, path: '/' },
    stop: () => child.kill(),
  };
}

async function startPlatform(): Promise<{ targets: Target[]; stop: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const free = Object.fromEntries(
    ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [name, { port: 0 }]),
  );
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(free));
  await mkdir(join(folder, 'plugins/bench'), { recursive: true });
  await writeFile(join(folder, 'plugins/bench/svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'plugins/bench/package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'plugins/bench/hooks.js'), 'export const noop = () => null;\n');
  const svc = async (...args: string[]) => {
    const [command, ...rest] = [...SERVER_CORE, join(packageRoot, 'bin/svc'), ...args, '--json'];
    return JSON.parse((await run(command!, rest, { cwd: folder })).stdout).result;
  };
  await svc('up', '-d');
  const gateway = (await svc('status')).services.find(({ name }: { name: string }) => name === 'gateway');
  const targets: Target[] = [];
  for (const event of EVENTS) {
    const { secret } = await svc('webhooks', 'provision', 'bench', event);
    // Accepting alone: what a burst sees, whose handlers run when it is over.
    if (event === 'held') await svc('webhooks', 'pause', 'bench', event);
    const name = event === 'held' ? 'svc, async, on hold' : `svc, ${event}`;
    targets.push({ name, port: gateway.port, secret, path: `/webhooks/bench/${event}` });
  }
  return {
    targets,
    async stop() {
      await svc('down');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Accepts a second, side by side with a bare server, interleaved rounds, every feature and the access log on. */
export async function benchmark(): Promise<BenchResult> {
  const bare = await startBare();
  const platform = await startPlatform();
  const targets = [bare.target, ...platform.targets];
  const reports = new Map<string, LoadReport[]>(targets.map(({ name }) => [name, []]));
  try {
    for (let round = -1; round < ROUNDS; round++) {
      for (const target of targets) {
        const report = await generateLoad({
          port: target.port,
          connections: CONNECTIONS,
          durationMs: round < 0 ? 1500 : ROUND_MS,
          request: requestTo(target),
        });
        const wrong = Object.keys(report.statuses).filter((status) => !status.startsWith('2'));
        if (wrong.length > 0) throw new Error(`${target.name} answered ${JSON.stringify(report.statuses)}`);
        // The first round warms up.
        if (round >= 0) reports.get(target.name)!.push(report);
        // An async round leaves work behind, which must not run in another's round.
        if (target.name === 'svc, async') await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
      }
    }
  } finally {
    bare.stop();
    await platform.stop();
  }
  const of = (name: string, value: (report: LoadReport) => number): number =>
    median(reports.get(name)!.map(value));
  const base = of(bare.target.name, ({ perSecond }) => perSecond);
  return {
    name: 'Webhook accepts, 2 KB, HMAC, 50 connections',
    rows: targets.map(({ name }) => ({
      server: name,
      'accepts/s': round(of(name, ({ perSecond }) => perSecond)),
      'p50 ms': round(
        of(name, ({ p50Ms }) => p50Ms),
        2,
      ),
      'p99 ms': round(
        of(name, ({ p99Ms }) => p99Ms),
        2,
      ),
      'x bare': round(of(name, ({ perSecond }) => perSecond) / base, 2),
    })),
    note: `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS / 1000} s. Servers on one core (all daemons and plugin processes of svc share it), load on the other. On hold: deliveries are accepted and their handlers do not run yet. Each delivery has its own id, is journalled with synchronous=FULL before the answer, and leaves an access line.`,
  };
}

export { benchmark as run };

if (import.meta.main) console.log(JSON.stringify(await benchmark(), null, 2));
