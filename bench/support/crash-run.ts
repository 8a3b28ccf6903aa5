import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { provisionWebhook } from '../../src/contracts/index.ts';
import { createClient } from '../../src/http/client.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';

export interface CrashRunOptions {
  /** Deliveries with unique ids, half to a sync and half to an async webhook. */
  deliveries: number;
  /** Share of them sent again with the same id on another connection. */
  duplicates: number;
  connections: number;
  /** Number of kill -9 of the gateway, spread over the run. */
  kills: number;
  /** Time limit for handling the accepted deliveries, counted from the last acceptance. */
  settleMs: number;
}

export interface CrashReport {
  /** Ids answered with success. */
  acknowledged: number;
  /** Requests answered `duplicate`. */
  toldDuplicate: number;
  /** Requests retried after an error or a 5xx. */
  retried: number;
  /** Acknowledged ids without a handler run: must be 0. */
  lost: number;
  /** Ids handled more than once. */
  handledTwice: number;
  /** Ids handled twice by the same gateway process: must be 0. */
  unexplained: number;
  kills: number;
  seconds: number;
  perSecond: number;
}

const TOKEN = 'crash-run';
const RETRY_MS = 50;

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'crash',
  version: '1.0.0',
  permissions: {
    fs: { write: ['./runs.log'], read: ['./runs.log'] },
    env: ['GENERATION'],
    quotas: { concurrency: 20 },
  },
  webhooks: ['sync', 'async'].map((event) => ({
    event,
    handler: 'hooks.js#handle',
    async: event === 'async',
    auth: { type: 'hmac', header: 'x-signature' },
    idempotencyKey: 'id',
    rateLimit: { requestsPerMinute: 1_000_000_000 },
  })),
};

/** Appends one line per run with the gateway's generation, so that the count survives kills. */
const HANDLER = `import { appendFileSync } from 'node:fs';
const file = new URL('./runs.log', import.meta.url);
export const handle = (ctx, { id }) => {
  appendFileSync(file, id + ' ' + ctx.env.GENERATION + '\\n');
  return null;
};
`;

interface Job {
  id: string;
  event: 'sync' | 'async';
}

/** Sends deliveries, kills and restarts the gateway, and counts handler runs. */
export async function crashRun(options: CrashRunOptions): Promise<CrashReport> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-crash-'));
  const runs = join(folder, 'plugins/crash/runs.log');
  await mkdir(join(folder, 'plugins/crash'), { recursive: true });
  await writeFile(join(folder, 'svc.config.json'), '{}');
  await writeFile(join(folder, 'plugins/crash/svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'plugins/crash/package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'plugins/crash/hooks.js'), HANDLER);
  await writeFile(runs, '');
  const gateway = createKillableGateway(folder, await freePort());
  try {
    await gateway.start();
    const client = createClient({
      url: gateway.url,
      peer: 'gateway',
      headers: () => ({ authorization: `Bearer ${TOKEN}` }),
    });
    const secrets = new Map<string, string>();
    for (const event of ['sync', 'async'])
      secrets.set(
        event,
        (await client.call(provisionWebhook, { body: { pluginId: 'crash', event } as never })).secret,
      );
    const startedAt = performance.now();
    const sent = await sendAll(options, gateway, secrets);
    const seconds = (performance.now() - startedAt) / 1000;
    const handled = await settled(runs, sent.acknowledged, options.settleMs);
    return {
      ...summarize(sent, handled, gateway.kills()),
      seconds,
      perSecond: sent.acknowledged.size / seconds,
    };
  } finally {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

type KillableGateway = ReturnType<typeof createKillableGateway>;

function createKillableGateway(folder: string, port: number) {
  let child: ChildProcess | undefined;
  let generation = 0;
  const program = join(packageRoot, 'bench/support/gateway-process.ts');

  async function start(): Promise<void> {
    const started = spawn(process.execPath, [program, folder, String(port), TOKEN], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, GENERATION: String(generation) },
    });
    child = started;
    await new Promise<void>((resolve, reject) => {
      started.stdout!.once('data', () => resolve());
      started.once('exit', (code) =>
        reject(new Error(`The gateway exited with code ${code} while starting.`)),
      );
    });
  }
  async function stop(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child!.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    kills: () => generation,
    start,
    stop,
    async killAndStart(): Promise<void> {
      generation++;
      await stop();
      await start();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Sent {
  acknowledged: Set<string>;
  toldDuplicate: number;
  retried: number;
}

async function sendAll(
  { deliveries, duplicates, connections, kills }: CrashRunOptions,
  gateway: KillableGateway,
  secrets: Map<string, string>,
): Promise<Sent> {
  const jobs = planJobs(deliveries, duplicates);
  const sent: Sent = { acknowledged: new Set(), toldDuplicate: 0, retried: 0 };
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const killAt = Array.from({ length: kills }, (_, k) => Math.floor((jobs.length * (k + 1)) / (kills + 1)));
  let next = 0;
  let restarting: Promise<void> = Promise.resolve();

  async function work(): Promise<void> {
    for (;;) {
      const index = next++;
      const job = jobs[index];
      if (!job) return;
      if (killAt.includes(index)) restarting = restarting.then(() => gateway.killAndStart());
      for (;;) {
        const answer = await post(agent, gateway.port, job, secrets.get(job.event)!).catch(() => undefined);
        if (answer && answer.status < 300) {
          if (answer.duplicate) sent.toldDuplicate++;
          sent.acknowledged.add(job.id);
          break;
        }
        if (answer && answer.status < 500) throw new Error(`The gateway answered ${answer.status}.`);
        sent.retried++;
        await sleep(RETRY_MS);
      }
    }
  }
  await Promise.all(Array.from({ length: connections }, work));
  await restarting;
  agent.destroy();
  return sent;
}

/** A repeat follows at once or about 200 jobs later, so that the first is in flight, done, or lost in a crash. */
function planJobs(count: number, duplicates: number): Job[] {
  const jobs: Job[] = [];
  const every = Math.round(1 / duplicates);
  for (let n = 0; n < count; n++) {
    jobs.push({ id: `d${n}`, event: n % 2 === 0 ? 'sync' : 'async' });
    const earlier = n - (n % 3 === 0 ? 1 : 200);
    if (n % every === 0 && earlier >= 0)
      jobs.push({ id: `d${earlier}`, event: earlier % 2 === 0 ? 'sync' : 'async' });
  }
  return jobs;
}

function post(
  agent: Agent,
  port: number,
  { id, event }: Job,
  secret: string,
): Promise<{ status: number; duplicate: boolean }> {
  const body = JSON.stringify({ id, pad: 'x'.repeat(500) });
  return new Promise((resolve, reject) => {
    const sending = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        method: 'POST',
        path: `/webhooks/crash/${event}`,
        headers: {
          'content-length': Buffer.byteLength(body),
          'x-svc-namespace': 'default',
          'x-signature': createHmac('sha256', secret).update(body).digest('hex'),
        },
      },
      (response) => {
        let text = '';
        response.on('data', (chunk) => (text += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode!, duplicate: text.includes('"duplicate"') }),
        );
        response.on('error', reject);
      },
    );
    sending.on('error', reject);
    sending.end(body);
  });
}

/** Waits until every acknowledged id was handled, at most `settleMs`. */
async function settled(
  file: string,
  acknowledged: ReadonlySet<string>,
  settleMs: number,
): Promise<Map<string, number[]>> {
  for (const until = Date.now() + settleMs; ; ) {
    const handled = new Map<string, number[]>();
    for (const line of (await readFile(file, 'utf8')).split('\n')) {
      const [id, generation] = line.split(' ');
      if (id) handled.set(id, [...(handled.get(id) ?? []), Number(generation)]);
    }
    const missing = [...acknowledged].some((id) => !handled.has(id));
    if (!missing || Date.now() > until) return handled;
    await sleep(500);
  }
}

function summarize(
  { acknowledged, toldDuplicate, retried }: Sent,
  handled: Map<string, number[]>,
  kills: number,
) {
  const twice = [...handled.values()].filter((generations) => generations.length > 1);
  return {
    acknowledged: acknowledged.size,
    toldDuplicate,
    retried,
    lost: [...acknowledged].filter((id) => !handled.has(id)).length,
    handledTwice: twice.length,
    unexplained: twice.filter((generations) => new Set(generations).size < generations.length).length,
    kills,
  };
}
