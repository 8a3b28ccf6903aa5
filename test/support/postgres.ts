import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { appendFile, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { atEnd } from './at-end.ts';
import { freePort } from './ports.ts';

const DEBIAN_FOLDER = '/usr/lib/postgresql';
const USER = 'svc_test';
/**
 * Waits until standard input closes, then stops the server. Without a word on standard input, the test process was killed
 * or has ended: then the folder goes too.
 */
const GUARD = `folder=$PWD; "$@" & server=$!; word=$(cat); kill -QUIT $server 2>/dev/null; wait $server
cd /; [ -n "$word" ] || rm -rf "$folder"`;

/** Folder of `initdb` and `postgres`; null where PostgreSQL is not installed. */
export const POSTGRES_PROGRAMS = findPrograms();

/** Title of a skipped test, for machines without PostgreSQL. */
export const POSTGRES_MISSING = 'PostgreSQL is not installed: apt install postgresql';

function findPrograms(): string | null {
  if (!existsSync(DEBIAN_FOLDER)) return null;
  const [newest] = readdirSync(DEBIAN_FOLDER).sort((a, b) => Number(b) - Number(a));
  const folder = newest && join(DEBIAN_FOLDER, newest, 'bin');
  return folder && existsSync(join(folder, 'initdb')) ? folder : null;
}

export interface PostgresServerOptions {
  /** Whether commits reach the disk; tests that kill the server want it. */
  durable?: boolean;
  settings?: Record<string, string>;
}

/** PostgreSQL refuses to run as root, so root starts it as the user that Debian's package makes. */
function serverUser(): { uid?: number; gid?: number } {
  if (userInfo().uid !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout),
  );
  return { uid: uid!, gid: gid! };
}

async function serverFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-postgres-'));
  const { uid, gid } = serverUser();
  if (uid !== undefined) await chown(folder, uid, gid!);
  return folder;
}

/** Runs a program of PostgreSQL to its end. */
async function runProgram(name: string, args: readonly string[], folder: string): Promise<void> {
  const program = join(POSTGRES_PROGRAMS!, name);
  await promisify(execFile)(program, [...args], { ...serverUser(), cwd: folder });
}

/** A PostgreSQL server in a temporary folder. */
export class PostgresServer {
  readonly #folder: string;
  readonly #port: number;
  #guard: ChildProcess | null = null;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  static async start({
    durable = false,
    settings = {},
  }: PostgresServerOptions = {}): Promise<PostgresServer> {
    const folder = await serverFolder();
    const data = join(folder, 'data');
    const options = [
      '--username',
      USER,
      '--auth',
      'trust',
      '--encoding',
      'UTF8',
      '--locale',
      'C.UTF-8',
      '--no-sync',
    ];
    await runProgram('initdb', ['--pgdata', data, ...options], folder);
    const server = new PostgresServer(folder, await freePort());
    const all = {
      listen_addresses: '127.0.0.1',
      port: String(server.#port),
      unix_socket_directories: folder,
      max_connections: '200',
      shared_buffers: '32MB',
      // Its transactions would hold back readers of positions for a moment.
      autovacuum: 'off',
      ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`);
    await writeFile(join(data, 'postgresql.auto.conf'), lines.join(''));
    await server.up();
    return server;
  }

  /** Starts a standby on a copy of this server's data. */
  async startStandby(): Promise<PostgresServer> {
    const folder = await serverFolder();
    const standby = new PostgresServer(folder, await freePort());
    const data = join(folder, 'data');
    const from = [
      ...['--host', '127.0.0.1', '--port', String(this.#port), '--username', USER],
      ...['--checkpoint', 'fast', '--no-sync', '--write-recovery-conf', '--wal-method', 'stream'],
    ];
    await runProgram('pg_basebackup', ['--pgdata', data, ...from], folder);
    const own = `port = '${standby.#port}'\nunix_socket_directories = '${folder}'\n`;
    await appendFile(join(data, 'postgresql.auto.conf'), own);
    await standby.up();
    return standby;
  }

  /** Copies the data without the write-ahead log, as the base of a recovery to a later time. */
  async baseBackup(): Promise<string> {
    const folder = await serverFolder();
    const from = ['--host', '127.0.0.1', '--port', String(this.#port), '--username', USER];
    const how = ['--checkpoint', 'fast', '--no-sync', '--wal-method', 'none'];
    await runProgram('pg_basebackup', ['--pgdata', join(folder, 'data'), ...from, ...how], folder);
    return folder;
  }

  /** Starts a server on a base backup that replays the archived log up to a restore point. */
  static async recover(folder: string, archive: string, restorePoint: string): Promise<PostgresServer> {
    const server = new PostgresServer(folder, await freePort());
    const data = join(folder, 'data');
    const settings = {
      port: String(server.#port),
      unix_socket_directories: folder,
      archive_mode: 'off',
      restore_command: `cp ${archive}/%f %p`,
      recovery_target_name: restorePoint,
      recovery_target_action: 'promote',
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    await appendFile(join(data, 'postgresql.auto.conf'), lines.join(''));
    await writeFile(join(data, 'recovery.signal'), '');
    await server.up();
    return server;
  }

  /** Makes the primary of a standby. Resolves when it accepts writes. */
  async promote(): Promise<void> {
    await this.run('select pg_promote(true, 60)');
  }

  /** Starts the server, again after `stop`. */
  async up(): Promise<void> {
    const command = [join(POSTGRES_PROGRAMS!, 'postgres'), '-D', join(this.#folder, 'data')];
    const child = spawn('sh', ['-c', GUARD, 'guard', ...command], {
      ...serverUser(),
      cwd: this.#folder,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    this.#guard = child;
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`postgres ended with ${code}: ${log}`)));
      child.stderr!.on('data', (chunk) => {
        log = (log + chunk).slice(-20_000);
        if (/ready to accept (?:read-only )?connections/.test(log)) resolve();
      });
    });
  }

  /** Stops the server. `immediate` leaves what a crash leaves: the next start recovers from the write-ahead log. */
  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    const guard = this.#guard;
    if (!guard || guard.exitCode !== null) return;
    this.#guard = null;
    const ended = new Promise((resolve) => guard.once('exit', resolve));
    process.kill(await this.#pid(), mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    guard.stdin!.end('stop');
    await ended;
  }

  /** Ends the postmaster with SIGKILL, as when the machine is lost. Its other processes then end by themselves. */
  async kill(): Promise<void> {
    const guard = this.#guard;
    if (!guard || guard.exitCode !== null) return;
    this.#guard = null;
    const ended = new Promise((resolve) => guard.once('exit', resolve));
    process.kill(await this.#pid(), 'SIGKILL');
    guard.stdin!.end('stop');
    await ended;
  }

  async #pid(): Promise<number> {
    const lines = await readFile(join(this.#folder, 'data/postmaster.pid'), 'utf8');
    return Number(lines.split('\n', 1)[0]);
  }

  async remove(): Promise<void> {
    await this.stop('immediate');
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: this.#port };
  }

  url(database = 'postgres'): string {
    return `postgres://${USER}@127.0.0.1:${this.#port}/${database}`;
  }

  /** Runs SQL as the superuser. */
  async run(sql: string, database?: string): Promise<pg.QueryResult> {
    const client = new pg.Client(this.url(database));
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }
}

let shared: Promise<PostgresServer> | undefined;
let databases = 0;

/** The URL of an empty database. All tests of a process share one server; the database is dropped when the test ends. */
export async function emptyPostgres(): Promise<string> {
  shared ??= PostgresServer.start();
  const server = await shared;
  const name = `test_${process.pid}_${++databases}`;
  await server.run(`create database ${name}`);
  atEnd(() => server.run(`drop database if exists ${name} with (force)`));
  return server.url(name);
}
