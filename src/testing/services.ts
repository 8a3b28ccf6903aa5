import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ManifestV3, PlatformConfig, type ServiceName } from '../contracts/index.ts';
import type { DaemonDefinition, DaemonServices } from '../daemons/define-daemon.ts';
import { createPeers } from '../daemons/peers.ts';
import { rest } from '../daemons/rest/index.ts';
import { type RunningDaemon, startDaemon } from '../daemons/run-daemon.ts';
import { state } from '../daemons/state/index.ts';
import type { KeyMaterial } from '../kit/security/keys.ts';
import { type Random, systemRandom } from '../kit/security/random.ts';
import type { ManualClock } from '../kit/time/clock.ts';
import { permissionSets, type StubFetch } from '../plugins/index.ts';
import type { TestLog } from './types.ts';

const ADMIN = 'test-host';

export interface TestServices {
  rest: RunningDaemon<Awaited<ReturnType<typeof rest.services>>>;
  keys: KeyMaterial;
  random: Random;
  /** Throws UPSTREAM_UNAVAILABLE for a service that was not started. */
  urlOf(service: ServiceName): string;
  /** Starts the additional services required by the manifest. */
  startFor(manifest: ManifestV3): Promise<void>;
  /** Starts the gateway unless it is running. */
  startGateway(): Promise<void>;
  /** Administrator token for the gateway. */
  token: string;
  /** Makes the workflow service process timers after the clock was moved. */
  tick(): Promise<void>;
  /** Stops all services and deletes their data. */
  close(): Promise<void>;
}

export interface TestServicesOptions {
  /** Absolute plugin folders. */
  plugins: string[];
  pluginConfig: Record<string, Record<string, unknown>>;
  /** The `adapters` section of the config. */
  adapters: Record<string, unknown>;
  clock: ManualClock;
  write(line: TestLog): void;
  /** Replaces the network for `ctx.fetch`. */
  fetch: StubFetch | undefined;
}

/**
 * Starts state and REST service in this process, on free ports and a temporary folder. The workflow service and the gateway
 * start only if the manifest requires them.
 */
export async function startTestServices(options: TestServicesOptions): Promise<TestServices> {
  const { clock, plugins, pluginConfig, adapters, write, fetch } = options;
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-plugin-test-'));
  const random = systemRandom();
  const keys: KeyMaterial = {
    jwtSecret: random.secret(32),
    previousJwtSecret: null,
    internalSecret: random.secret(32),
    masterKey: random.secret(32),
  };
  const peers = createPeers();
  const token = random.secret(32);
  const gatewayConfig = {
    admins: [ADMIN],
    staticTokens: { [token]: { hostId: ADMIN, namespaceId: 'default' } },
  };
  const running: RunningDaemon[] = [];
  let tick = async (): Promise<void> => {};

  async function close(): Promise<void> {
    try {
      for (const daemon of running.splice(0).reverse()) await daemon.close();
    } finally {
      await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  async function start<Services extends DaemonServices>(definition: DaemonDefinition<Services>) {
    const daemon = await startDaemon(definition, {
      config: PlatformConfig.parse({
        plugins,
        pluginConfig,
        adapters,
        auth: { mode: 'optional' },
        gateway: gatewayConfig,
      }),
      stubFetch: fetch,
      profile: 'test',
      projectDir: dataDir,
      dataDir,
      keys,
      operator: null,
      env: process.env,
      clock,
      random,
      peers,
      output: { write: (line) => write(JSON.parse(line) as TestLog), flush: () => {} },
      logLevel: 'debug',
      listen: { host: '127.0.0.1', port: 0 },
    });
    running.push(daemon);
    return daemon;
  }

  async function startFor(manifest: ManifestV3): Promise<void> {
    const usesService = (service: 'workflows' | 'jobs' | 'webhooks') =>
      permissionSets(manifest).some(({ platform }) => platform?.[service]);
    if (usesService('workflows') || usesService('jobs') || manifest.workflows.length > 0) {
      const { workflow } = await import('../daemons/workflow/index.ts');
      const { url, services } = await start(workflow);
      peers.set({ workflow: url });
      tick = services.engine.tick;
    }
    if (usesService('webhooks')) await startGateway();
  }

  let gatewayStart: Promise<void> | undefined;
  function startGateway(): Promise<void> {
    gatewayStart ??= import('../daemons/gateway/index.ts').then(async ({ gateway }) => {
      peers.set({ gateway: (await start(gateway)).url });
    });
    return gatewayStart;
  }

  try {
    const stateService = await start(state);
    peers.set({ state: stateService.url });
    const { urlOf } = peers;
    return {
      rest: await start(rest),
      keys,
      random,
      urlOf,
      token,
      startFor,
      startGateway,
      tick: () => tick(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
