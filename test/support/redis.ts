import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEnd } from './at-end.ts';
import { freePort } from './ports.ts';

export const HAS_REDIS = spawnSync('redis-server', ['--version']).status === 0;

/** Title of a skipped test, for machines without Redis. */
export const REDIS_MISSING = 'Redis is not installed: apt install redis-server';

const PASSWORD = 'word-of-the-cache';

/** Stops the server when standard input closes, so that it never outlives the test process. */
const GUARD =
  '"$@" & server=$!; echo "pid $server"; cat >/dev/null; kill -9 $server 2>/dev/null; wait $server';

/** A Redis server in a temporary folder. It keeps nothing over a restart. */
export class RedisServer {
  readonly #folder: string;
  readonly #port: number;
  #guard: ChildProcess | null = null;
  #pid = 0;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  static async start(): Promise<RedisServer> {
    const server = new RedisServer(await mkdtemp(join(tmpdir(), 'svc-redis-')), await freePort());
    await server.up();
    return server;
  }

  /** URL of a database, of which the server has 1000. */
  url(database = 0): string {
    return `redis://:${PASSWORD}@127.0.0.1:${this.#port}/${database}`;
  }

  async up(): Promise<void> {
    const settings = {
      port: this.#port,
      bind: '127.0.0.1',
      requirepass: PASSWORD,
      save: '',
      databases: 1000,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const command = ['redis-server', ...options];
    const guard = spawn('sh', ['-c', GUARD, 'guard', ...command], {
      cwd: this.#folder,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#guard = guard;
    let log = '';
    await new Promise<void>((resolve, reject) => {
      guard.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${log}`)));
      guard.stdout.on('data', (chunk) => {
        log = (log + chunk).slice(-20_000);
        this.#pid = Number(/^pid (\d+)/m.exec(log)?.[1] ?? this.#pid);
        if (log.includes('Ready to accept connections')) resolve();
      });
    });
  }

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    const guard = this.#guard;
    if (!guard) return;
    this.#guard = null;
    const ended = new Promise((resolve) => guard.once('exit', resolve));
    process.kill(this.#pid, 'SIGKILL');
    guard.stdin!.end();
    await ended;
  }

  /** Suspends or resumes the server: its connections stay open, but nothing is answered. */
  suspend(isSuspended: boolean): void {
    process.kill(this.#pid, isSuspended ? 'SIGSTOP' : 'SIGCONT');
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Starts a server that ends with the test. */
export async function startRedis(): Promise<RedisServer> {
  const server = await RedisServer.start();
  atEnd(() => server.remove());
  return server;
}

let shared: Promise<RedisServer> | undefined;
let databases = 0;

/** The URL of an empty database. All tests of a process share one server, which ends with the process. */
export async function emptyRedis(): Promise<string> {
  shared ??= RedisServer.start();
  return (await shared).url(databases++ % 1000);
}
