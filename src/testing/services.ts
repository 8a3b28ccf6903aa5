import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ManifestV3, PlatformConfig, type ServiceName } from '../contracts/index.ts';
import type { DaemonDefinition, DaemonServices } from '../daemons/define-daemon.ts';
import type { Vault } from '../daemons/gateway/domain/vault/vault.ts';
import { createPeers, type Peers } from '../daemons/peers.ts';
import { rest } from '../daemons/rest/index.ts';
import { type RunningDaemon, startDaemon } from '../daemons/run-daemon.ts';
import { state } from '../daemons/state/index.ts';
import type { KeyMaterial } from '../kit/security/keys.ts';
import { type Random, systemRandom } from '../kit/security/random.ts';
import type { ManualClock } from '../kit/time/clock.ts';
import { permissionSets, type StubFetch } from '../plugins/index.ts';
import type { ConnectionStore } from '../store/ports/index.ts';
import type { TestLog } from './call-types.ts';
import { placedConnection } from './placed-connection.ts';

const ADMIN = 'test-host';

type RestDaemon = RunningDaemon<Awaited<ReturnType<typeof rest.services>>>;

export interface TestServicesOptions {
  /** Absolute paths of the plugins' folders. */
  plugins: string[];
  pluginConfig: Record<string, Record<string, unknown>>;
  adapters: Record<string, unknown>;
  clock: ManualClock;
  write(line: TestLog): void;
  /** Function that replaces the network for `ctx.fetch`, or undefined to use the network. */
  fetch: StubFetch | undefined;
}

/**
 * Starts the state and REST services in this process, on free ports and with a temporary folder. The workflow service
 * and the gateway start on demand.
 */
export async function startTestServices(options: TestServicesOptions): Promise<TestServices> {
  const daemons = new TestDaemons(options, await mkdtemp(join(tmpdir(), 'svc-plugin-test-')));
  try {
    const stateService = await daemons.start(state);
    daemons.peers.set({ state: stateService.url });
    return new TestServices(daemons, await daemons.start(rest));
  } catch (error) {
    await daemons.close();
    throw error;
  }
}

export class TestServices {
  readonly rest: RestDaemon;
  readonly keys: KeyMaterial;
  readonly random: Random;
  /** Token of an administrator for the gateway. */
  readonly token: string;
  readonly #daemons: TestDaemons;
  #engine: { tick(): Promise<void> } | undefined;
  #gatewayStart: Promise<void> | undefined;
  #connections: ConnectionStore | undefined;
  #vault: Vault | undefined;

  constructor(daemons: TestDaemons, restDaemon: RestDaemon) {
    this.#daemons = daemons;
    this.rest = restDaemon;
    this.keys = daemons.keys;
    this.random = daemons.random;
    this.token = daemons.token;
  }

  /** Returns the URL of a service. Throws UPSTREAM_UNAVAILABLE if the service was not started. */
  urlOf(service: ServiceName): string {
    return this.#daemons.peers.urlOf(service);
  }

  /** Starts the additional services that the manifest requires. */
  async startFor(manifest: ManifestV3): Promise<void> {
    const usesService = (service: 'workflows' | 'jobs' | 'webhooks' | 'emit') =>
      permissionSets(manifest).some(({ platform }) => platform?.[service]);
    if (usesService('workflows') || usesService('jobs') || manifest.workflows.length > 0) {
      const { workflow } = await import('../daemons/workflow/index.ts');
      const { url, services } = await this.#daemons.start(workflow);
      this.#daemons.peers.set({ workflow: url });
      this.#engine = services.engine;
    }
    const readsSecrets = permissionSets(manifest).some(
      ({ secrets = [], connections = [] }) => secrets.length + connections.length > 0,
    );
    if (usesService('webhooks') || usesService('emit') || readsSecrets) await this.startGateway();
  }

  /** Sets a secret of a tenant. */
  async setSecret(namespaceId: string, name: string, value: string): Promise<void> {
    await this.startGateway();
    await this.#vault!.set({ namespaceId, name }, { value, expiresAt: null, by: ADMIN });
  }

  /** Gives a tenant an authorized connection. */
  async setConnection(namespaceId: string, name: string, accessToken: string): Promise<void> {
    await this.startGateway();
    const { keys, random } = this;
    const made = { keys, id: random.uuid(), now: this.#daemons.clock.now() };
    await this.#connections!.create(placedConnection({ namespaceId, name }, accessToken, made));
  }

  startGateway(): Promise<void> {
    this.#gatewayStart ??= import('../daemons/gateway/index.ts').then(async ({ gateway }) => {
      const { url, services } = await this.#daemons.start(gateway);
      this.#vault = services.vault;
      this.#connections = services.store.connections;
      this.#daemons.peers.set({ gateway: url });
    });
    return this.#gatewayStart;
  }

  /** Makes the workflow service process its due timers after the test's clock was moved. */
  async tick(): Promise<void> {
    await this.#engine?.tick();
  }

  /** Stops all services and deletes their data. */
  close(): Promise<void> {
    return this.#daemons.close();
  }
}

/** Runs services in this process. All services share a config, keys and a temporary folder. */
class TestDaemons {
  readonly random: Random = systemRandom();
  readonly peers: Peers = createPeers();
  readonly token = this.random.secret(32);
  readonly keys: KeyMaterial = {
    jwtSecret: this.random.secret(32),
    previousJwtSecret: null,
    internalSecret: this.random.secret(32),
    masterKey: this.random.secret(32),
  };
  readonly #options: TestServicesOptions;
  readonly #dataDir: string;
  readonly #running: Array<{ close(): Promise<void> }> = [];

  get clock(): ManualClock {
    return this.#options.clock;
  }

  constructor(options: TestServicesOptions, dataDir: string) {
    this.#options = options;
    this.#dataDir = dataDir;
  }

  async start<Services extends DaemonServices>(
    definition: DaemonDefinition<Services>,
  ): Promise<RunningDaemon<Services>> {
    const { clock, write, fetch } = this.#options;
    const dataDir = this.#dataDir;
    const daemon = await startDaemon(definition, {
      config: this.#config(),
      stubFetch: fetch,
      profile: 'test',
      projectDir: dataDir,
      dataDir,
      keys: this.keys,
      operator: null,
      env: process.env,
      clock,
      random: this.random,
      peers: this.peers,
      output: { write: (line) => write(JSON.parse(line) as TestLog), flush: () => {} },
      logLevel: 'debug',
      listen: { host: '127.0.0.1', port: 0 },
    });
    this.#running.push(daemon);
    return daemon;
  }

  /** Stops the services in reverse order and deletes their data. */
  async close(): Promise<void> {
    try {
      for (const daemon of this.#running.splice(0).reverse()) await daemon.close();
    } finally {
      await rm(this.#dataDir, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  #config(): PlatformConfig {
    const { plugins, pluginConfig, adapters } = this.#options;
    return PlatformConfig.parse({
      plugins,
      pluginConfig,
      adapters,
      auth: { mode: 'optional' },
      gateway: {
        admins: [ADMIN],
        staticTokens: { [this.token]: { hostId: ADMIN, namespaceId: 'default' } },
      },
    });
  }
}
