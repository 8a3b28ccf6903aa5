import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { freePort, isInstalled, started } from './proxies/front-ends.ts';

const run = promisify(execFile);
/** Servers run on one core and the load on the other, so that they do not compete. */
const CORE = '0';
const ON_CORE = ['taskset', '-c', CORE];

/** A server under test. */
export interface Target {
  name: string;
  port: number;
  path: string;
  secret: string;
  /** Sends the payload as a field of a form, as GitHub and Slack do. */
  isForm?: boolean;
  /** Main process; CPU time includes its children. */
  pid: number;
}

export interface Server {
  targets: Target[];
  stop(): Promise<void>;
}

export const EVENTS = {
  held: 'svc, async, on hold',
  async: 'svc, async',
  sync: 'svc, sync',
  form: 'svc, sync, form',
} as const;

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'bench',
  version: '1.0.0',
  webhooks: Object.keys(EVENTS).map((event) => ({
    event,
    handler: 'hooks.js#noop',
    async: event === 'held' || event === 'async',
    ...(event === 'form' ? { body: 'form' } : {}),
    auth: { type: 'hmac', header: 'x-hub-signature-256', algorithm: 'sha256', prefix: 'sha256=' },
    idempotencyKey: 'header:x-github-delivery',
    rateLimit: { requestsPerMinute: 1_000_000_000 },
  })),
};

/** Starts the platform with `svc up -d`, with all features and access logging. */
export async function startPlatform(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const services = ['gateway', 'rest', 'workflow', 'marketplace', 'state'];
  const free = Object.fromEntries(services.map((name) => [name, { port: 0 }]));
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(free));
  await mkdir(join(folder, 'plugins/bench'), { recursive: true });
  await writeFile(join(folder, 'plugins/bench/svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'plugins/bench/package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'plugins/bench/hooks.js'), 'export const noop = () => null;\n');
  const svc = async (...args: string[]) => {
    const [command, ...rest] = [...ON_CORE, join(packageRoot, 'bin/svc'), ...args, '--json'];
    return JSON.parse((await run(command!, rest, { cwd: folder })).stdout).result;
  };
  await svc('up', '-d');
  const { port, pid } = (await svc('status')).services.find(
    ({ name }: { name: string }) => name === 'gateway',
  );
  const targets: Target[] = [];
  for (const [event, name] of Object.entries(EVENTS)) {
    const { secret } = await svc('webhooks', 'provision', 'bench', event);
    // Measures acceptance only, as in a burst whose handlers run afterwards.
    if (event === 'held') await svc('webhooks', 'pause', 'bench', event);
    const isForm = event === 'form';
    targets.push({ name, port, pid, secret, isForm, path: `/webhooks/bench/${event}` });
  }
  return {
    targets,
    async stop() {
      await svc('down');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Minimal cost of a receiver. */
export function startBare(): Promise<Server> {
  return startScript('bare node:http + HMAC, no store', 'bare-hmac-server.ts', []);
}

/** GitHub's middleware from the folder in BENCH_MODULES. Undefined if it is not installed. */
export async function startOctokit(): Promise<Server | undefined> {
  const modules = process.env.BENCH_MODULES ?? '';
  if (existsSync(join(modules, 'node_modules/@octokit/webhooks')))
    return startScript('@octokit/webhooks, no store', 'octokit-server.ts', [modules]);
  console.error('@octokit/webhooks is skipped. Set BENCH_MODULES to a folder where it is installed.');
  return undefined;
}

async function startScript(name: string, script: string, args: string[]): Promise<Server> {
  const secret = 'bench-secret';
  const [command, ...first] = [...ON_CORE, process.execPath, join(packageRoot, 'bench/support', script)];
  const child = spawn(command!, [...first, ...args, secret], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(Number(text)));
    child.once('exit', (code) => reject(new Error(`${script} exited with ${code}`)));
  });
  return {
    targets: [{ name, port, path: '/', secret, pid: child.pid! }],
    stop: async () => void child.kill(),
  };
}

/** adnanh/webhook, which starts a program per delivery. Undefined if it is not installed. */
export async function startAdnanh(): Promise<Server | undefined> {
  if (!isInstalled('webhook', '-version', 'webhook')) return undefined;
  const secret = 'bench-secret';
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const signature = { source: 'header', name: 'X-Hub-Signature-256' };
  const hook = {
    id: 'bench',
    'execute-command': '/bin/true',
    'trigger-rule': { match: { type: 'payload-hmac-sha256', secret, parameter: signature } },
    'trigger-rule-mismatch-http-response-code': 401,
  };
  const file = join(folder, 'hooks.json');
  await writeFile(file, JSON.stringify([hook]));
  const port = await freePort();
  const { child } = await started(
    CORE,
    port,
    ...['webhook', '-hooks', file, '-ip', '127.0.0.1', '-port', String(port)],
  );
  return {
    targets: [{ name: 'adnanh/webhook, /bin/true', port, path: '/hooks/bench', secret, pid: child.pid! }],
    async stop() {
      child.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
