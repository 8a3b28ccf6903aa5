import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../src/kit/paths.ts';

/** What this needs on Debian: `apt-get install podman runc`. */
const CONTAINERS_CONF = `[containers]
default_ulimits=["nofile=1024:1024","nproc=4096:4096"]
netns="host"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
`;

/** A user with ranges in /etc/subuid, as whom Podman is tested without root. */
const ROOTLESS_USER = process.env.SVC_TEST_ROOTLESS_USER;

export interface TestEngine {
  socket: string;
  /** How its command line is run otherwise: the environment and the words before a command. */
  env: NodeJS.ProcessEnv;
  command: readonly string[];
  /** Runs the engine's own command line on the same store. */
  cli(...args: string[]): string;
  /** By force, all there are. */
  removeAll(): void;
  stop(): Promise<void>;
}

export type EngineName = 'podman' | 'docker' | 'podman without root';

/** Why the tests on containers are skipped; undefined when there is an engine. */
export const engineMissing: string | undefined = missing('podman');
if (engineMissing !== undefined) console.warn(`Tests on containers are skipped: ${engineMissing}`);

/** Why the tests on that engine are skipped; undefined when it is there. */
export function missing(name: EngineName): string | undefined {
  const programs = name === 'docker' ? ['docker', 'dockerd'] : ['podman', 'runc'];
  const absent = programs.find(
    (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).status !== 0,
  );
  if (absent) return `${absent} is not installed (apt-get install podman runc, or docker.io)`;
  if (process.getuid?.() !== 0) return 'the engine of these tests needs root';
  if (name !== 'podman without root') return undefined;
  return ROOTLESS_USER ? undefined : 'SVC_TEST_ROOTLESS_USER names no user';
}

/** A real engine that serves the Docker API on a socket and a store of its own, with the runner image. */
export async function startEngine(name: EngineName = 'podman'): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-engine-'));
  const socket = join(folder, 'engine.sock');
  const { env, as, command, serve } =
    name === 'docker' ? docker(folder, socket) : podman(folder, socket, name);
  const cli = (...args: string[]): string =>
    execFileSync(command[0]!, [...command.slice(1), ...args], {
      env,
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const service: ChildProcess = spawn(serve[0]!, serve.slice(1), {
    env,
    stdio: 'ignore',
    // Podman's monitor leaves notes (`oom`) where it stands.
    cwd: folder,
  });
  for (let waited = 0; !existsSync(socket); waited += 50) {
    if (waited > 30_000 || service.exitCode !== null) throw new Error(`${name} did not open its socket`);
    await sleep(50);
  }
  makeImage(folder, env, as, command);
  function removeAll(): void {
    const ids = cli('ps', '--all', '--quiet').trim().split('\n').filter(Boolean);
    if (ids.length > 0) cli('rm', '--force', ...(name === 'docker' ? [] : ['--time', '0']), ...ids);
  }
  return {
    socket,
    env,
    command,
    cli,
    removeAll,
    async stop() {
      removeAll();
      const gone = new Promise((resolve) => service.once('exit', resolve));
      service.kill('SIGTERM');
      await gone;
      if (name !== 'docker')
        spawnSync(command[0]!, [...command.slice(1), 'system', 'reset', '--force'], {
          env,
          cwd: folder,
          stdio: 'ignore',
        });
      unmountBelow(folder);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Docker leaves the network namespaces of its containers mounted. */
function unmountBelow(folder: string): void {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const points = mounts.flatMap((line) => line.split(' ')[1] ?? []).filter((path) => path.startsWith(folder));
  for (const path of points.reverse()) spawnSync('umount', ['--lazy', path], { stdio: 'ignore' });
}

interface Program {
  env: NodeJS.ProcessEnv;
  /** The words before a program that is run as the engine's user. */
  as: readonly string[];
  command: readonly string[];
  serve: readonly string[];
}

function podman(folder: string, socket: string, name: EngineName): Program {
  const conf = join(folder, 'containers.conf');
  writeFileSync(conf, CONTAINERS_CONF);
  const env: NodeJS.ProcessEnv = { ...process.env, CONTAINERS_CONF: conf };
  const store = ['--root', join(folder, 'root'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  const isRootless = name === 'podman without root';
  if (isRootless) {
    giveTo(ROOTLESS_USER!, folder);
    Object.assign(env, { HOME: folder, XDG_RUNTIME_DIR: folder });
  }
  const as = isRootless ? ['runuser', '-u', ROOTLESS_USER!, '--'] : [];
  const command = [...as, 'podman', ...store];
  return { env, as, command, serve: [...command, 'system', 'service', '-t', '0', `unix://${socket}`] };
}

function giveTo(user: string, folder: string): void {
  const id = (which: string): number => Number(execFileSync('id', [which, user], { encoding: 'utf8' }));
  chownSync(folder, id('-u'), id('-g'));
  chmodSync(folder, 0o711);
}

function docker(folder: string, socket: string): Program {
  const host = ['--host', `unix://${socket}`];
  const own = (what: string): string[] => [`--${what}`, join(folder, what)];
  const network = ['--iptables=false', '--ip6tables=false', '--bridge=none'];
  return {
    env: process.env,
    as: [],
    command: ['docker', ...host],
    serve: [
      'dockerd',
      ...host,
      ...own('data-root'),
      ...own('exec-root'),
      ...own('pidfile'),
      ...network,
      '--storage-driver=vfs',
    ],
  };
}

/** As `npm run image:runner -- --local` makes it. */
function makeImage(
  folder: string,
  env: NodeJS.ProcessEnv,
  as: readonly string[],
  command: readonly string[],
): void {
  const program = join(folder, 'engine');
  const words = command.slice(as.length).map((word) => `'${word}'`);
  writeFileSync(program, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o755 });
  const script = join(packageRoot, 'scripts', 'image-runner.js');
  const [first, ...args] = [...as, process.execPath, script, '--local', '--engine', program];
  execFileSync(first!, args, { env, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
}
