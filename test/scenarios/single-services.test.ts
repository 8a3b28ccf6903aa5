import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SERVICE_NAMES, type ServiceName } from '../../src/contracts/index.ts';
import type { AnyJson } from '../support/any-json.ts';
import { type CliRun, runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { FREE_PORTS, freePort } from '../support/ports.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import {
  CLUSTER_SECRETS,
  type SingleServiceOptions,
  SingleServiceProcess,
  singleProject,
  startSingle,
} from '../support/single-service.ts';
import { userEnvironment } from '../support/user-environment.ts';

const PLUGINS = [fileURLToPath(new URL('../fixtures/projects/single/plugins/*', import.meta.url))];
const TOKEN = 'token-of-the-operator';
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const POLL = { timeout: 60_000, interval: 100 };

type Started = SingleServiceProcess & { url: string };

/** Services that share a database, each with a data folder of its own, as on machines of their own. */
class Machines {
  readonly #project: string;
  readonly #gatewayPort: number;
  readonly #databaseUrl: string;

  private constructor(project: string, gatewayPort: number, databaseUrl: string) {
    this.#project = project;
    this.#gatewayPort = gatewayPort;
    this.#databaseUrl = databaseUrl;
  }

  static async create(): Promise<Machines> {
    const port = await freePort();
    const databaseUrl = await migratedPostgres();
    const project = await singleProject({
      ...FREE_PORTS,
      store: { url: databaseUrl },
      cluster: { enabled: true },
      gateway: {
        ...{ port, publicUrl: 'http://svc.example', drainDelayMs: 0 },
        staticTokens: { [TOKEN]: { hostId: 'operator', namespaceId: 'default' } },
      },
      plugins: PLUGINS,
    });
    return new Machines(project, port, databaseUrl);
  }

  get gatewayUrl(): string {
    return `http://127.0.0.1:${this.#gatewayPort}`;
  }

  async start(name: ServiceName, args: readonly string[] = [], home?: string): Promise<Started> {
    return startSingle(name, this.#options(args, home ?? join(await tempDir(), 'data')));
  }

  /** Starts a service that other machines could reach, since it does not listen on loopback only. */
  async startReachable(name: ServiceName): Promise<Started> {
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

  async #query(text: string, values: unknown[] = []): Promise<unknown[]> {
    const client = new pg.Client({ connectionString: this.#databaseUrl });
    await client.connect();
    const { rows } = await client.query(text, values);
    await client.end();
    return rows;
  }

  async startAll(): Promise<Record<ServiceName, Started>> {
    const started = SERVICE_NAMES.map(async (name) => [name, await this.start(name)] as const);
    return Object.fromEntries(await Promise.all(started)) as Record<ServiceName, Started>;
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

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'services in processes of their own' : POSTGRES_MISSING,
  { timeout: 240_000 },
  () => {
    test('find each other through the store, in any order of their starts', async () => {
      const machines = await Machines.create();
      const services = await machines.startAll();
      const keep = () => machines.call('/api/v1/plugins/desk/notes/a', { method: 'PUT', body: { n: 1 } });
      await expect.poll(keep, POLL).toMatchObject({ status: 200, body: { kept: 'a' } });
      expect(await machines.call('/api/v1/plugins/desk/notes/a')).toMatchObject({ body: { n: 1 } });
      expect(await machines.call('/api/v1/marketplace/plugins')).toMatchObject({
        body: { items: [{ id: 'desk', status: 'loaded' }] },
      });
      const runs = () => machines.call('/api/v1/workflows/runs');
      await expect.poll(runs, POLL).toMatchObject({ status: 200 });
      const start = { method: 'POST', body: { workflowId: 'stamp-twice' } };
      const run = await machines.call('/api/v1/workflows/runs', start);
      expect(run.status).toBe(202);
      const path = `/api/v1/workflows/runs/${run.body.run.id}`;
      await expect.poll(() => machines.call(path), POLL).toMatchObject({ body: { status: 'succeeded' } });

      for (const name of SERVICE_NAMES) {
        const logs = () => machines.call(`/api/v1/logs?service=${name}&search=listens`);
        await expect.poll(logs, POLL).toMatchObject({ body: { items: [{ serviceId: name }] } });
        const probes = ['/health', '/ready'].map((path) => (name === 'rest' ? `/api/v1${path}` : path));
        for (const path of probes) expect((await fetch(`${services[name].url}${path}`)).status).toBe(200);
        expect(services[name].stderr).toBe('');
      }
    });

    test('a stop under load fails no request and exits with 0, because the address is withdrawn first', async () => {
      const machines = await Machines.create();
      await Promise.all(
        (['state', 'marketplace', 'workflow', 'gateway'] as const).map((name) => machines.start(name)),
      );
      const [one] = await Promise.all([machines.startReachable('rest'), machines.startReachable('rest')]);
      const find = () => machines.call('/api/v1/plugins/desk/notes/a');
      await expect.poll(find, POLL).toMatchObject({ status: 200 });

      const statuses: number[] = [];
      let isOver = false;
      const client = async (): Promise<void> => {
        while (!isOver) statuses.push((await find()).status);
      };
      const load = Promise.all([client(), client()]);
      const served = () => one.records.filter(({ message }) => String(message).includes('/notes/')).length;
      await expect.poll(served, POLL).toBeGreaterThan(0);
      one.child.kill('SIGTERM');
      expect(await one.exited).toEqual({ code: 0, signal: null });
      const before = statuses.length;
      await expect.poll(() => statuses.length, POLL).toBeGreaterThan(before + 20);
      isOver = true;
      await load;
      expect(new Set(statuses)).toEqual(new Set([200]));
    });

    test('calls avoid a killed process before its lease has expired', async () => {
      const machines = await Machines.create();
      await Promise.all(
        (['state', 'marketplace', 'workflow', 'gateway'] as const).map((name) => machines.start(name)),
      );
      const [one] = await Promise.all([machines.startReachable('rest'), machines.startReachable('rest')]);
      const find = async () => (await machines.call('/api/v1/plugins/desk/notes/a')).status;
      await expect.poll(find, POLL).toBe(200);
      one.child.kill('SIGKILL');
      await one.exited;
      await machines.setLeases('rest', Date.now() + 3_600_000);
      const fourTimes = async () => [await find(), await find(), await find(), await find()];
      await expect.poll(fourTimes, POLL).toEqual([200, 200, 200, 200]);
    });

    test('known addresses stay in use while all leases have expired, as after an outage of PostgreSQL', async () => {
      const machines = await Machines.create();
      await machines.startAll();
      const find = async () => (await machines.call('/api/v1/plugins/desk/notes/a')).status;
      await expect.poll(find, POLL).toBe(200);
      const statuses: number[] = [];
      await machines.setLeases('rest', 1);
      do statuses.push(await find());
      while (!(await machines.hasLease('rest')));
      expect(new Set(statuses)).toEqual(new Set([200]));
    });

    test('a node with some services uses those of other nodes, and svc shows both', async () => {
      const machines = await Machines.create();
      const home = join(await tempDir(), 'data');
      const svc = (...args: string[]) => machines.svc(home, ...args);
      await Promise.all((['state', 'marketplace', 'workflow'] as const).map((name) => machines.start(name)));
      const up = await svc('up', '-d', '--services', 'gateway,rest');
      onTestFinished(async () => void (await svc('down')));
      expect([up.code, up.stderr]).toEqual([0, expect.stringContaining('only rest, gateway')]);
      const keep = () => machines.call('/api/v1/plugins/desk/notes/a', { method: 'PUT', body: { n: 1 } });
      await expect.poll(keep, POLL).toMatchObject({ status: 200, body: { kept: 'a' } });

      const { services, members } = (await svc('status')).json.result;
      expect(services.map(({ name }: AnyJson) => name)).toEqual(['rest', 'gateway']);
      const kinds = new Set(members.map(({ kind }: AnyJson) => kind));
      expect(kinds).toEqual(new Set(SERVICE_NAMES));

      const again = machines.attempt('rest', home);
      expect(await again.exited).toEqual({ code: 1, signal: null });
      expect(again.stderr).toMatch(/rest already runs on .* by svc up \(pid \d+\)\./);
      expect((await svc('restart', 'rest')).code).toBe(0);
      await expect.poll(keep, POLL).toMatchObject({ status: 200 });
    });

    test('a service is refused while the same service of its node runs, and others are not', async () => {
      const machines = await Machines.create();
      const home = join(await tempDir(), 'data');
      const state = await machines.start('state', [], home);
      const again = machines.attempt('state', home);
      expect(await again.exited).toEqual({ code: 1, signal: null });
      expect(again.stderr).toContain(
        `state already runs on ${home} by svc start state (pid ${state.child.pid}).`,
      );
      expect(again.stderr).toContain('set SVC_HOME=<folder>');
      await machines.start('marketplace', [], home);
    });

    test('a lost lease ends the process with 1, so that its service manager starts it again', async () => {
      const machines = await Machines.create();
      const workflow = await machines.start('workflow');
      await machines.endMembers();
      expect(await workflow.exited).toEqual({ code: 1, signal: null });
    });
  },
);
