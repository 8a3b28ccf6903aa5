import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { entryFile } from '../../src/kit/files/paths.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { FREE_PORTS } from '../support/ports.ts';
import { POSTGRES_PROGRAMS } from '../support/postgres.ts';
import {
  CLUSTER_SECRETS,
  SingleServiceProcess,
  singleProject,
  startSingle,
} from '../support/single-service.ts';
import { userEnvironment } from '../support/user-environment.ts';
import { runSvc } from './svc.ts';

const SLOW = { timeout: 60_000 };
const POLL = { timeout: 20_000, interval: 50 };
const ENV = { GATEWAY_INTERNAL_SECRET: 'i'.repeat(40) };
const PLUGINS = [fileURLToPath(new URL('../fixtures/projects/single/plugins/*', import.meta.url))];

/** A project on SQLite whose config names the addresses of all services. */
const project = (config: object = {}) =>
  singleProject({
    ...FREE_PORTS,
    services: Object.fromEntries(
      ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [
        name,
        { url: 'http://127.0.0.1:1' },
      ]),
    ),
    plugins: PLUGINS,
    ...config,
  });

/** Runs a service with Node as process 1 of a PID namespace, as the first process of a container. */
const PID_NAMESPACE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'];
const hasNamespaces = spawnSync(PID_NAMESPACE[0]!, [...PID_NAMESPACE.slice(1), 'true']).status === 0;

function childrenOf(pid: number): number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.flatMap((task) =>
    readFileSync(join('/proc', String(pid), 'task', task, 'children'), 'utf8')
      .split(' ')
      .filter((text) => text !== '')
      .map(Number),
  );
}

function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(') ') + 2).startsWith('Z');
  } catch {
    return false;
  }
}

test('unknown services and services that cannot work alone are refused', async () => {
  const folder = await singleProject(FREE_PORTS);
  const unknown = await runSvc(folder, ['start', 'gatewy', '--json']);
  expect([unknown.code, unknown.stderr + unknown.stdout]).toEqual([
    2,
    expect.stringContaining('Did you mean gateway?'),
  ]);
  const rest = await runSvc(folder, ['start', 'rest', '--json']);
  expect([rest.code, rest.stdout + rest.stderr]).toEqual([
    1,
    expect.stringContaining('rest cannot work without the other services'),
  ]);
});

test('prints its log to stdout as JSON lines, drains after SIGTERM, and exits with 0', SLOW, async () => {
  const service = await startSingle('rest', { project: await project(), env: ENV });
  const slow = fetch(`${service.url}/api/v1/plugins/desk/slow/2000`);
  // The request is admitted before a later one is answered.
  await fetch(`${service.url}/api/v1/plugins/desk/slow/1`);
  service.child.kill('SIGTERM');
  expect((await slow).status).toBe(200);
  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect(service.stderr).toBe('');
  const messages = service.records.map(({ message }) => message);
  expect(messages).toContain('SIGTERM: draining; a second signal ends the process at once');
  expect(messages.at(-1)).toBe('rest stopped');
});

test('runs with the Node flags of its service, in the process that was started', SLOW, async () => {
  const { child } = await startSingle('state', { project: await project(), env: ENV });
  const environment = readFileSync(`/proc/${child.pid}/environ`, 'utf8').split('\0');
  expect(environment).toContain(`MALLOC_TRIM_THRESHOLD_=${8 * 1024 * 1024}`);
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  expect(status).toMatch(/^Name:\tsvc state$/m);
});

test('a second signal ends the process at once', SLOW, async () => {
  const service = await startSingle('rest', { project: await project(), env: ENV });
  const slow = fetch(`${service.url}/api/v1/plugins/desk/slow/20000`).catch(() => 'cut');
  await fetch(`${service.url}/api/v1/plugins/desk/slow/1`);
  service.child.kill('SIGTERM');
  const isDraining = () => service.records.some(({ message }) => String(message).startsWith('SIGTERM'));
  await expect.poll(isDraining, POLL).toBe(true);
  // Signals within 250 ms count as one.
  await new Promise((resolve) => setTimeout(resolve, 400));
  service.child.kill('SIGTERM');
  expect(await service.exited).toEqual({ code: 130, signal: null });
  expect(await slow).toBe('cut');
});

test('the data folder of SQLite belongs to one process, which others name with a remedy', SLOW, async () => {
  const folder = await project();
  const { child } = await startSingle('state', { project: folder, env: ENV });
  const home = join(folder, '.svc');
  for (const args of [
    ['start', 'state'],
    ['start', 'marketplace'],
    ['up', '-d'],
  ]) {
    const { code, stdout } = await runSvc(folder, [...args, '--json'], ENV);
    const [line] = stdout.trim().split('\n').slice(-1);
    const { error } = JSON.parse(line!);
    expect([code, error.code, error.message]).toEqual([
      1,
      'CONFLICT',
      `\`svc start state\` is already running on ${home} (pid ${child.pid}).`,
    ]);
    expect(error.details.hint).toContain(`Stop pid ${child.pid}, or set SVC_HOME=<folder>`);
  }
  const { json } = await runSvc(folder, ['status', '--json'], ENV);
  expect([json.result.running, json.result.hint]).toEqual([
    false,
    `There is no supervisor here, but state (pid ${child.pid}) runs by itself. Stop it before svc up.`,
  ]);
});

/** Starts `state`, which waits for its store, and stops it. */
async function stopWhileStarting(url: string, isWaiting: () => boolean | Promise<boolean>) {
  const folder = await singleProject({
    ...{ store: { url }, cluster: { enabled: true }, adapters: { vectorStore: null } },
    ...{ state: { port: 0, drainMs: 100 }, gateway: { publicUrl: 'http://svc.example' } },
  });
  const env = { ...CLUSTER_SECRETS, SVC_ADVERTISE_URL: 'http://127.0.0.1:4000' };
  const service = new SingleServiceProcess('state', { project: folder, env });
  await expect.poll(isWaiting, POLL).toBe(true);
  service.child.kill('SIGTERM');
  expect(await service.exited).toEqual({ code: 1, signal: null });
  return service.records.map(({ message }) => message);
}

const STILL_STARTING =
  'state exits: it was still starting 2100 ms after the stop signal. Its store may be unreachable or locked by a migration';

test('a stop while PostgreSQL does not answer ends within the deadline and says so', SLOW, async () => {
  let connections = 0;
  const silent = createServer(() => connections++).listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  const url = `postgres://svc@127.0.0.1:${port}/svc`;
  expect(await stopWhileStarting(url, () => connections > 0)).toContain(STILL_STARTING);
});

test.skipIf(!POSTGRES_PROGRAMS)('a stop while a migration locks the schema ends likewise', SLOW, async () => {
  const url = await migratedPostgres();
  const migration = new pg.Client(url);
  await migration.connect();
  onTestFinished(() => migration.end());
  await migration.query('begin');
  await migration.query('lock table svc.schema_version in access exclusive mode');
  const isWaiting = async () => {
    const { rows } = await migration.query('select from pg_locks where not granted');
    return rows.length > 0;
  };
  expect(await stopWhileStarting(url, isWaiting)).toContain(STILL_STARTING);
});

test('a port in use ends the process with 1 and names the port', SLOW, async () => {
  const other = await startSingle('state', { project: await project(), env: ENV });
  const { port } = new URL(other.url);
  const second = new SingleServiceProcess('state', {
    ...{ project: await project(), env: ENV },
    args: ['--port', port],
  });
  expect(await second.exited).toEqual({ code: 1, signal: null });
  expect(second.stderr).toContain(`Port ${port} on 127.0.0.1 is in use`);
});

test('a terminal shows formatted lines, and Ctrl-C stops the service', SLOW, async () => {
  const words = [process.execPath, entryFile('cli'), 'start', 'state'].map((word) => `'${word}'`);
  // With `exec`, a shell that forks for its last command (dash) does not answer Ctrl-C itself.
  const command = `exec ${words.join(' ')}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: await project(),
    env: { ...userEnvironment(), ...ENV },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let shown = '';
  child.stdout.on('data', (text) => (shown += text));
  await expect.poll(() => shown, POLL).toMatch(/INFO.*\(state\).*state listens on/);
  const exited = new Promise((resolve) => child.once('close', resolve));
  child.stdin.write('\x03');
  expect(await exited).toBe(0);
});

/** Whether a process handles stop signals. SIGHUP tells, because Node itself has a handler for SIGTERM. */
function handlesStops(pid: number): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!;
  return (BigInt(`0x${caught}`) & 1n) !== 0n;
}

describe.skipIf(!hasNamespaces)('as process 1', () => {
  test('SIGTERM before the service listens ends the process with 0', SLOW, async () => {
    const service = new SingleServiceProcess('state', {
      ...{ project: await project(), env: ENV, prefix: [...PID_NAMESPACE, '--'] },
    });
    const first = () => childrenOf(service.child.pid!)[0];
    await expect
      .poll(() => first() !== undefined && handlesStops(first()!), { ...POLL, interval: 5 })
      .toBe(true);
    process.kill(first()!, 'SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  test('leaves no zombies of killed plugin processes, and stops after SIGTERM', SLOW, async () => {
    const service = await startSingle('rest', {
      ...{ project: await project(), env: ENV, prefix: [...PID_NAMESPACE, '--'] },
    });
    const [pid] = childrenOf(service.child.pid!);
    for (let calls = 0; calls < 2; calls++) {
      const { status } = await fetch(`${service.url}/api/v1/plugins/desk/endless`);
      expect(status).toBe(504);
    }
    await expect.poll(() => childrenOf(pid!).filter(isZombie), POLL).toEqual([]);
    process.kill(pid!, 'SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });
});
