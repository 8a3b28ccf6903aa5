import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { SERVICE_NAMES, type ServiceName } from '../../src/contracts/index.ts';
import type { AnyJson } from './any-json.ts';
import { type CliRun, runCli } from './cli.ts';
import { tempDir } from './daemon.ts';
import { migratedPostgres } from './migrated-postgres.ts';
import { FREE_PORTS, freePort } from './ports.ts';
import {
  CLUSTER_SECRETS,
  type SingleServiceOptions,
  SingleServiceProcess,
  singleProject,
  startSingle,
} from './single-service.ts';
import { userEnvironment } from './user-environment.ts';

const PLUGINS = [fileURLToPath(new URL('../fixtures/projects/single/plugins/*', import.meta.url))];
const TOKEN = 'token-of-the-operator';
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
export type StartedService = SingleServiceProcess & { url: string };

/** Services that share a database, each with a data folder of its own, as on machines of their own. */
export class Machines {
  readonly #project: string;
  readonly #gatewayPort: number;
  readonly #databaseUrl: string;

  private constructor(project: string, gatewayPort: number, databaseUrl: string) {
    this.#project = project;
    this.#gatewayPort = gatewayPort;
    this.#databaseUrl = databaseUrl;
  }

  static async create(gateway: object = {}): Promise<Machines> {
    const port = await freePort();
    const databaseUrl = await migratedPostgres();
    const project = await singleProject({
      ...FREE_PORTS,
      store: { url: databaseUrl },
      cluster: { enabled: true },
      gateway: {
        ...{ port, publicUrl: 'http://svc.example', drainDelayMs: 0, ...gateway },
        staticTokens: { [TOKEN]: { hostId: 'operator', namespaceId: 'default' } },
      },
      plugins: PLUGINS,
    });
    return new Machines(project, port, databaseUrl);
  }

  get gatewayUrl(): string {
    return `http://127.0.0.1:${this.#gatewayPort}`;
  }

  async start(name: ServiceName, args: readonly string[] = [], home?: string): Promise<StartedService> {
    return startSingle(name, this.#options(args, home ?? join(await tempDir(), 'data')));
  }

  /** Starts a service that other machines could reach, since it does not listen on loopback only. */
  async startReachable(name: ServiceName): Promise<StartedService> {
    const port = String(await freePort());
    return this.start(name, [
      ...['--host', '0.0.0.0', '--port', port],
      ...['--advertise', `http://127.0.0.1:${port}`],
    ]);
  }

  attempt(name: ServiceName, home: string): SingleServiceProcess {
    return new SingleServiceProcess(name, this.#options([], home));
  }

  /** Runs `svc` on the node with this data folder. */
  svc(home: string, ...args: string[]): Promise<CliRun> {
    const { project, env } = this.#options([], home);
    return runCli([...args, '--json'], { cwd: project, env: { ...userEnvironment(), ...env } });
  }

  /** Sets the end of the leases of a service, in epoch ms, until its processes renew them. */
  async setLeases(kind: ServiceName, until: number): Promise<void> {
    await this.#query('update svc.member set lease_until = $2 where kind = $1', [kind, until]);
  }

  async hasLease(kind: ServiceName): Promise<boolean> {
    const text =
      'select fence from svc.member where kind = $1 and lease_until > extract(epoch from clock_timestamp()) * 1000';
    return (await this.#query(text, [kind])).length > 0;
  }

  /** Ends all members, as another node does after their leases have expired. */
  async endMembers(): Promise<void> {
    await this.#query('update svc.member set ended_at = 1');
  }

  /** Returns the revision of the plugins that each live process has loaded, by service. */
  async pluginRevisions(): Promise<Record<string, number[]>> {
    const rows = await this.#query(
      'select kind, plugin_revision::int as revision from svc.member where ended_at is null and plugin_revision is not null order by kind, fence',
    );
    const byKind = Map.groupBy(rows as Array<{ kind: string; revision: number }>, ({ kind }) => kind);
    return Object.fromEntries([...byKind].map(([kind, all]) => [kind, all.map(({ revision }) => revision)]));
  }

  async #query(text: string, values: unknown[] = []): Promise<unknown[]> {
    const client = new pg.Client({ connectionString: this.#databaseUrl });
    await client.connect();
    const { rows } = await client.query(text, values);
    await client.end();
    return rows;
  }

  async startAll(): Promise<Record<ServiceName, StartedService>> {
    const started = SERVICE_NAMES.map(async (name) => [name, await this.start(name)] as const);
    return Object.fromEntries(await Promise.all(started)) as Record<ServiceName, StartedService>;
  }

  #options(args: readonly string[], home: string): SingleServiceOptions {
    // All machines of the test are this one, so their addresses on loopback may be used.
    const env = { ...CLUSTER_SECRETS, SVC_HOME: home, SVC_ADVERTISE_URL: this.gatewayUrl };
    return { project: this.#project, env, args };
  }

  async call(path: string, init: { method?: string; body?: unknown } = {}): Promise<AnyJson> {
    const { method = 'GET', body } = init;
    const response = await fetch(`${this.gatewayUrl}${path}`, {
      ...{ method, headers: HEADERS },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json().catch(() => null) };
  }
}
