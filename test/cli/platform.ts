import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { ServiceName } from '../../src/contracts/index.ts';
import { entryFile, packageRoot } from '../../src/kit/files/paths.ts';
import { type CliRun, runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { FREE_PORTS } from '../support/ports.ts';
import { userEnvironment } from '../support/user-environment.ts';

/** Commands whose text on stdin the walk provides. */
const READS_STDIN = new Set(['login', 'secrets']);

export type { CliRun };

export interface StartedCli {
  child: ChildProcess;
  /** What stdout holds so far. */
  stdout(): string;
  stderr(): string;
  done: Promise<CliRun>;
}

export interface TestPlatform {
  folder: string;
  dataDir: string;
  /** That of its programs. */
  env: NodeJS.ProcessEnv;
  /** Starts `svc` in the project folder. */
  start(...args: string[]): StartedCli;
  /** Runs `svc <args> --json` to its end, in this process where the command allows it. */
  svc(...args: string[]): Promise<CliRun>;
  /** The status of one service as the supervisor tells it. */
  service(name: string): Promise<ServiceView>;
}

export interface ServiceView {
  name: string;
  state: string;
  pid: number;
  port: number;
  url: string;
  restarts: number;
  lastExit: { reason: string; signal: string | null } | null;
}

/** The launcher, as users start it: it builds what is out of date. */
const LAUNCHER = [join(packageRoot, 'bin', 'svc')];

/** Builds what is out of date, so that no test with a limit of time waits for it. */
export async function buildLauncher(): Promise<void> {
  await promisify(execFile)(LAUNCHER[0]!, ['--version'], { env: userEnvironment() });
}

/** The program itself; the sources or the build, as the tests are told. */
export const PROGRAM = [process.execPath, entryFile('cli')];

type Variables = Record<string, string | undefined>;

type PlatformOptions = [
  config?: Record<string, unknown>,
  env?: Variables,
  program?: readonly string[],
  /** Content of `.env`: what services get in addition. */
  dotEnv?: readonly string[],
];

/**
 * Options of a platform for tests of the supervisor: services are stand-ins, except the `real` ones. A whole platform of
 * them starts in a third of the CPU time.
 */
export function withStandIns({
  config = {},
  env = {},
  real = [],
}: {
  config?: object;
  env?: Variables;
  real?: ServiceName[];
} = {}): PlatformOptions {
  return [{ ...config }, env, PROGRAM, standInVariables(real)];
}

/** Lines of `.env` that replace all services except the `real` ones by stand-ins. */
export function standInVariables(real: readonly ServiceName[] = []): string[] {
  const preload = join(packageRoot, 'test/supervisor/support/stand-ins.js');
  return [`NODE_OPTIONS=--import=${preload}`, `TEST_REAL_SERVICES=${real.join(',')}`];
}

/** A project folder with `svc` to run in it; whatever still runs is stopped when the test ends. */
export async function testPlatform(...options: PlatformOptions): Promise<TestPlatform> {
  const platform = await createProject(join(await tempDir(), 'project'), ...options);
  onTestFinished(async () => void (await platform.svc('down')));
  return platform;
}

/** One that several tests share, for `beforeAll`: `end` stops it and removes its folder. */
export async function sharedPlatform(
  ...options: PlatformOptions
): Promise<TestPlatform & { end(): Promise<void> }> {
  const parent = await mkdtemp(join(tmpdir(), 'svc-test-'));
  const platform = await createProject(join(parent, 'project'), ...options);
  const end = async (): Promise<void> => {
    await platform.svc('down');
    await rm(parent, { recursive: true, force: true, maxRetries: 3 });
  };
  return { ...platform, end };
}

async function createProject(
  folder: string,
  config: Record<string, unknown> = {},
  env: Variables = {},
  [command, ...first]: readonly string[] = LAUNCHER,
  dotEnv: readonly string[] = [],
): Promise<TestPlatform> {
  await mkdir(folder);
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...FREE_PORTS, ...config }));
  const environment = { ...userEnvironment(), ...env };
  if (dotEnv.length > 0) await writeFile(join(folder, '.env'), dotEnv.join('\n'), { mode: 0o600 });

  function start(...args: string[]): StartedCli {
    const child = spawn(command!, [...first, ...args], {
      cwd: folder,
      env: environment,
      stdio: [READS_STDIN.has(args[0]!) ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout!.on('data', (text) => (stdout += text));
    child.stderr!.on('data', (text) => (stderr += text));
    const done = new Promise<CliRun>((resolve) =>
      child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr, json: parse(stdout) })),
    );
    return { child, stdout: () => stdout, stderr: () => stderr, done };
  }
  const svc = (...args: string[]): Promise<CliRun> =>
    runCli([...args, '--json'], { cwd: folder, env: environment });
  return {
    folder,
    dataDir: join(folder, '.svc'),
    env: environment,
    start,
    svc,
    async service(name) {
      const { json } = await svc('status');
      return json.result.services.find((service: ServiceView) => service.name === name);
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Holds a TCP port until the test ends. */
export async function occupyPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}
