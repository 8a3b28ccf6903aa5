import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ServiceStatus, SupervisorStatus } from '../../src/supervisor/control-protocol.ts';
import { identify } from '../../src/supervisor/process-identity.ts';
import type { RunFile } from '../../src/supervisor/run-file.ts';

const execute = promisify(execFile);
const POLL_MS = 10;
const FREE_PORTS = Object.fromEntries(
  ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [name, { port: 0 }]),
);

export interface Reply {
  exitCode: number;
  // biome-ignore lint/suspicious/noExplicitAny: the envelope depends on the command
  json: any;
}

/** A platform to be killed, run from the build in `packageFolder`. */
export interface CrashPlatform {
  folder: string;
  svc(...args: string[]): Promise<Reply>;
  status(): Promise<SupervisorStatus>;
  /** All processes in the run file, the supervisor first. */
  pids(): Promise<number[]>;
  runFile: string;
  /** Resolves when every service is ready and answers; rejects after `deadlineMs`. */
  untilHealthy(deadlineMs?: number): Promise<SupervisorStatus>;
  dispose(): Promise<void>;
}

/** `config`: sections of services in place of those that take any free port. */
export async function createCrashPlatform(
  packageFolder: string,
  config: object = {},
): Promise<CrashPlatform> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-crash-'));
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...FREE_PORTS, ...config }));
  const runFile = join(folder, '.svc', 'run', 'supervisor.json');
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(?:SVC_|GATEWAY_|NODE_ENV$|VITEST|NODE_COMPILE_CACHE$)/.test(name),
  );
  const env = Object.fromEntries(inherited);

  async function svc(...args: string[]): Promise<Reply> {
    const program = join(packageFolder, 'dist', 'cli.js');
    const options = { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 };
    const ended = await execute(process.execPath, [program, ...args, '--json'], options).then(
      ({ stdout }) => ({ stdout, exitCode: 0 }),
      (error) => ({ stdout: String(error.stdout), exitCode: Number(error.code) }),
    );
    return { exitCode: ended.exitCode, json: JSON.parse(ended.stdout) };
  }
  const status = async (): Promise<SupervisorStatus> => (await svc('status')).json.result;

  return {
    folder,
    svc,
    status,
    runFile,
    async pids() {
      const { supervisor, children } = JSON.parse(await readFile(runFile, 'utf8')) as RunFile;
      return [supervisor.pid, ...children.map(({ pid }) => pid)];
    },
    async untilHealthy(deadlineMs = 30_000) {
      const deadline = performance.now() + deadlineMs;
      for (;;) {
        const now = await status();
        if (now.services.every(({ state }) => state === 'ready') && (await allAnswer(now.services)))
          return now;
        if (performance.now() > deadline)
          throw new Error(`Not healthy after ${deadlineMs} ms: ${JSON.stringify(now.services)}`);
        await sleep(POLL_MS);
      }
    },
    async dispose() {
      await svc('down').catch(() => {});
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export const isAlive = (pid: number): boolean => identify(pid).startedAt !== null;

/** Resolves when another process than `pid` answers at the URL, as seen by clients. */
export async function untilReplaced(url: string, pid: number, deadlineMs = 30_000): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  while (isAlive(pid) || !(await answers(url))) {
    if (performance.now() > deadline) throw new Error(`${url} was not replaced within ${deadlineMs} ms.`);
    await sleep(POLL_MS);
  }
}

async function allAnswer(services: readonly ServiceStatus[]): Promise<boolean> {
  const all = await Promise.all(services.map(({ url }) => url !== null && answers(url)));
  return all.every(Boolean);
}

/** Every service serves `/metrics` to this machine; the REST API has no `/health`. */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
