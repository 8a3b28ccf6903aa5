import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../src/kit/files/paths.ts';

/** What this needs on Debian: `apt-get install podman runc`. */
const containersConf = (folder: string): string => `[containers]
default_ulimits=["nofile=1024:1024","nproc=4096:4096"]
netns="host"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
# Otherwise all engines share one below /run, and the reset of one takes it from the others.
tmp_dir="${join(folder, 'tmp')}"
`;

/** Networks of containers need iptables, and the PATH of some users lacks its folder. */
const ENGINE_PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

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
  const { env, user, command, serve } =
    name === 'docker' ? docker(folder, socket) : podman(folder, socket, name);
  const cli = (...args: string[]): string =>
    execFileSync(command[0]!, [...command.slice(1), ...args], {
      ...user,
      env,
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const service: ChildProcess = spawn(serve[0]!, serve.slice(1), {
    ...user,
    env,
    stdio: 'ignore',
    detached: true,
    // Podman's monitor leaves notes (`oom`) where it stands.
    cwd: folder,
  });
  for (let waited = 0; !existsSync(socket); waited += 50) {
    if (waited > 30_000 || service.exitCode !== null) throw new Error(`${name} did not open its socket`);
    await sleep(50);
  }
  makeImage(folder, { env, user, command });
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
      // Without root Podman is two processes.
      process.kill(-service.pid!, 'SIGTERM');
      await gone;
      if (name !== 'docker')
        spawnSync(command[0]!, [...command.slice(1), 'system', 'reset', '--force'], {
          ...user,
          env,
          cwd: folder,
          stdio: 'ignore',
        });
      endPause(folder);
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

interface Program extends Pick<TestEngine, 'env' | 'command'> {
  /** As whom it runs; as ourselves when empty. */
  user: { uid?: number; gid?: number };
  serve: readonly string[];
}

function podman(folder: string, socket: string, name: EngineName): Program {
  const conf = join(folder, 'containers.conf');
  writeFileSync(conf, containersConf(folder));
  const env: NodeJS.ProcessEnv = { ...process.env, PATH: ENGINE_PATH, CONTAINERS_CONF: conf };
  const store = ['--root', join(folder, 'root'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  const user: Program['user'] = name === 'podman without root' ? idsOf(ROOTLESS_USER!) : {};
  if (user.uid !== undefined && user.gid !== undefined) {
    chownSync(folder, user.uid, user.gid);
    Object.assign(env, { HOME: folder, XDG_RUNTIME_DIR: folder });
  }
  const command = ['podman', ...store];
  return { env, user, command, serve: [...command, 'system', 'service', '-t', '0', `unix://${socket}`] };
}

function idsOf(user: string): { uid: number; gid: number } {
  const id = (which: string): number => Number(execFileSync('id', [which, user], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Without root Podman keeps a process that holds its namespaces. */
function endPause(folder: string): void {
  const file = join(folder, 'libpod/tmp/pause.pid');
  if (existsSync(file)) process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
}

function docker(folder: string, socket: string): Program {
  const host = ['--host', `unix://${socket}`];
  const own = (what: string): string[] => [`--${what}`, join(folder, what)];
  const network = ['--iptables=false', '--ip6tables=false', '--bridge=none'];
  return {
    env: { ...process.env, PATH: ENGINE_PATH },
    user: {},
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
function makeImage(folder: string, { env, user, command }: Omit<Program, 'serve'>): void {
  const program = join(folder, 'engine');
  const words = command.map((word) => `'${word}'`).join(' ');
  writeFileSync(program, `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  const script = join(packageRoot, 'scripts', 'image-runner.js');
  execFileSync(process.execPath, [script, '--local', '--engine', program], {
    ...user,
    env,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}
