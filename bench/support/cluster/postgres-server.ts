import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { appendFile, chown, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from '../proxies/front-ends.ts';

const execute = promisify(execFile);
const DEBIAN_FOLDER = '/usr/lib/postgresql';
const USER = 'svc_bench';
export const DATABASE = 'svc';
const STANDBY = 'svc_standby';
const POLL_MS = 20;

/** Folder of `initdb` and `postgres`; undefined where PostgreSQL is not installed. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(DEBIAN_FOLDER)) return undefined;
  const [newest] = readdirSync(DEBIAN_FOLDER).sort((a, b) => Number(b) - Number(a));
  const folder = newest && join(DEBIAN_FOLDER, newest, 'bin');
  return folder && existsSync(join(folder, 'initdb')) ? folder : undefined;
}

/** PostgreSQL refuses to run as root, so root starts it as the user that Debian's package creates. */
function serverUser(): { uid?: number; gid?: number } {
  if (userInfo().uid !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
  return { uid: uid!, gid: gid! };
}

/** A PostgreSQL server with default settings, whose commits reach the disk, in a temporary folder. */
export class PostgresServer {
  readonly #folder: string;
  readonly port: number;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.port = port;
  }

  /** Starts a server with an empty database. */
  static start(): Promise<PostgresServer> {
    return PostgresServer.#orNothing(async (server) => {
      const options = ['--username', USER, '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C.UTF-8'];
      await server.#program('initdb', '--pgdata', server.#data, ...options);
      await server.#configure();
      await server.#ctl('start');
      await server.run(`create database ${DATABASE}`, [], 'postgres');
    });
  }

  /** Starts a standby for which every commit on this server waits from now on. */
  async addSynchronousStandby(): Promise<PostgresServer> {
    // Set before the copy, so that the standby inherits the setting.
    await this.run(`alter system set synchronous_standby_names = '${STANDBY}'`);
    return PostgresServer.#orNothing(async (standby) => {
      const source = `host=127.0.0.1 port=${this.port} user=${USER} application_name=${STANDBY}`;
      const options = ['--write-recovery-conf', '--wal-method', 'stream', '--checkpoint', 'fast'];
      await standby.#program('pg_basebackup', '--pgdata', standby.#data, '--dbname', source, ...options);
      await standby.#configure();
      await standby.#ctl('start');
      await this.run('select pg_reload_conf()');
      const isSynchronous = `select from pg_stat_replication where sync_state = 'sync'`;
      while ((await this.run(isSynchronous)).rowCount === 0) await sleep(POLL_MS);
    });
  }

  /** Removes the new server if its start fails. */
  static async #orNothing(start: (server: PostgresServer) => Promise<void>): Promise<PostgresServer> {
    const server = await PostgresServer.#create();
    try {
      await start(server);
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  static async #create(): Promise<PostgresServer> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-bench-postgres-'));
    const { uid, gid } = serverUser();
    if (uid !== undefined) await chown(folder, uid, gid!);
    return new PostgresServer(folder, await freePort());
  }

  async #configure(): Promise<void> {
    const settings = [
      "listen_addresses = '127.0.0.1'",
      `port = ${this.port}`,
      `unix_socket_directories = '${this.#folder}'`,
    ];
    // The last of equal settings applies, so a standby overrides the port that it copied.
    await appendFile(join(this.#data, 'postgresql.conf'), `\n${settings.join('\n')}\n`);
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  /** Host, port and database. */
  url(port = this.port): string {
    return `postgres://${USER}@127.0.0.1:${port}/${DATABASE}`;
  }

  /** Pid of the main process. */
  async pid(): Promise<number> {
    return Number((await readFile(join(this.#data, 'postmaster.pid'), 'utf8')).split('\n', 1)[0]);
  }

  /** `pg_ctl restart -m immediate`: the server stops as in a crash and recovers from its write-ahead log. */
  restartImmediately(): Promise<void> {
    return this.#ctl('restart', '-m', 'immediate');
  }

  /** Stops the server as in a crash. */
  stopImmediately(): Promise<void> {
    return this.#ctl('stop', '-m', 'immediate');
  }

  /** Promotes the standby. It inherited `synchronous_standby_names`, and without a reset its commits would wait forever. */
  async promote(): Promise<void> {
    await this.#ctl('promote');
    await this.run('alter system reset synchronous_standby_names');
    await this.run('select pg_reload_conf()');
  }

  async run(sql: string, values: unknown[] = [], database = DATABASE): Promise<pg.QueryResult> {
    const client = new pg.Client(this.url().replace(/[^/]+$/, database));
    await client.connect();
    try {
      return await client.query(sql, values);
    } finally {
      await client.end();
    }
  }

  async remove(): Promise<void> {
    if (existsSync(join(this.#data, 'postmaster.pid'))) await this.stopImmediately();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #ctl(...words: string[]): Promise<void> {
    const log = join(this.#folder, 'log');
    await this.#program('pg_ctl', '--silent', '--wait', '--pgdata', this.#data, '--log', log, ...words);
  }

  async #program(name: string, ...args: string[]): Promise<void> {
    await execute(join(postgresPrograms()!, name), args, { ...serverUser(), cwd: this.#folder });
  }
}
