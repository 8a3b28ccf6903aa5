import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
`;

export interface TestEngine {
  socket: string;
  /** Its configuration file, and the options that name its store: for running its command line otherwise. */
  conf: string;
  store: readonly string[];
  /** Runs the engine's own command line on the same store. */
  cli(...args: string[]): string;
  stop(): Promise<void>;
}

/** Why the tests on containers are skipped; undefined when there is an engine. */
export const engineMissing: string | undefined = missing();

function missing(): string | undefined {
  for (const program of ['podman', 'runc']) {
    if (spawnSync(program, ['--version'], { stdio: 'ignore' }).status !== 0)
      return `${program} is not installed (apt-get install podman runc)`;
  }
  return process.getuid?.() === 0 ? undefined : 'the engine of these tests needs root';
}

if (engineMissing !== undefined) console.warn(`Tests on containers are skipped: ${engineMissing}`);

/** A real Podman that serves the Docker API on a socket and a store of its own, with the runner image. */
export async function startEngine(): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-engine-'));
  const conf = join(folder, 'containers.conf');
  writeFileSync(conf, CONTAINERS_CONF);
  const env = { ...process.env, CONTAINERS_CONF: conf };
  const store = ['--root', join(folder, 'root'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  const socket = join(folder, 'engine.sock');
  const image = join(packageRoot, 'scripts', 'image-runner.js');
  execFileSync(process.execPath, [image, '--local', '--engine', 'podman', '--', ...store], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const service: ChildProcess = spawn(
    'podman',
    [...store, 'system', 'service', '-t', '0', `unix://${socket}`],
    {
      env,
      stdio: 'ignore',
      // Its monitor leaves notes (`oom`) where it stands.
      cwd: folder,
    },
  );
  for (let waited = 0; !existsSync(socket); waited += 50) {
    if (waited > 15_000) throw new Error('podman did not open its socket');
    await sleep(50);
  }
  const cli = (...args: string[]): string =>
    execFileSync('podman', [...store, ...args], { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return {
    socket,
    conf,
    store,
    cli,
    async stop() {
      spawnSync('podman', [...store, 'rm', '--all', '--force'], { env, stdio: 'ignore' });
      const gone = new Promise((resolve) => service.once('exit', resolve));
      service.kill('SIGTERM');
      await gone;
      spawnSync('podman', [...store, 'system', 'reset', '--force'], { env, stdio: 'ignore' });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
