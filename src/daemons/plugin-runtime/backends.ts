import type { HostTarget, PlatformConfig } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors.ts';
import { ownValue } from '../../kit/own-value.ts';
import {
  createPlatformServices,
  createWorkerBackend,
  type ExecutionBackend,
  type InvokeCommand,
  type PlatformServices,
  projectSecrets,
  type StepAccess,
  type WebhookAccess,
  type WorkerBackend,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { createAdapters } from './access/adapters.ts';
import { createStateAccess } from './access/state.ts';
import { createStepAccess } from './access/steps.ts';
import { createTaskAccess, createWebhookAccess } from './access/tasks.ts';
import { gatewayDispatch } from './gateway-dispatch.ts';
import type { RunningCode } from './running-code.ts';
import { type OnServiceCall, watchedServices } from './watched-services.ts';

type BackendName = PlatformConfig['execution']['default'];
/** The backends that are not in this process: the gateway makes its own, others ask the gateway. */
export type ElsewhereBackends = Record<Exclude<BackendName, 'worker'>, ExecutionBackend>;
export type CreateElsewhere = (services: PlatformServices, code: RunningCode) => ElsewhereBackends;

/** What a daemon has instead of asking the gateway for it. */
export interface OwnParts {
  createElsewhere?: CreateElsewhere;
  webhooks?: WebhookAccess;
  /** Called before each call of a handler to the platform. */
  onServiceCall?: OnServiceCall;
  /** The workflow service has the runs itself. */
  steps?: StepAccess;
  /** Whether it is the one that tells what is wrong with plugins, which every service finds when it loads them. */
  tellsOfPlugins?: boolean;
}

type Backends = ElsewhereBackends & { worker: WorkerBackend };

/** What handlers reach, and what runs them. */
export function createBackends(
  resources: Resources,
  invoke: InvokeCommand,
  code: RunningCode,
  own: OwnParts,
) {
  const { config, dataDir, logger, clock, analytics, stubFetch } = resources;
  const offered = createPlatformServices({
    state: createStateAccess(resources),
    logger,
    clock,
    invoke,
    analytics,
    fetch: { privateHosts: config.execution.privateHosts, ...(stubFetch ? { stub: stubFetch } : {}) },
    ...createTaskAccess(resources),
    adapters: createAdapters(resources),
    steps: own.steps ?? createStepAccess(resources),
    webhooks: own.webhooks ?? createWebhookAccess(resources),
  });
  const services = own.onServiceCall ? watchedServices(offered, own.onServiceCall) : offered;
  const secrets = projectSecrets(resources);
  const worker = createWorkerBackend({
    ...{ config: config.execution.worker, services, logger, clock, dataDir, secrets },
    onSandbox: resources.onSandbox,
    codeOf: (plugin) => code.codeOf(plugin),
  });
  const elsewhere = (own.createElsewhere ?? throughGateway(resources))(services, code);
  const backends: Backends = { ...elsewhere, worker };
  return { services, backends };
}

function throughGateway(resources: Resources): CreateElsewhere {
  return () => ({
    container: gatewayDispatch('container', resources),
    host: gatewayDispatch('host', resources),
  });
}

/**
 * Never another backend than the one asked for: whoever asks for a container relies on its walls. Throws
 * HOST_UNAVAILABLE where `target` chooses among hosts and the plugin runs on none.
 */
export function backendFor(
  execution: PlatformConfig['execution'],
  pluginId: string,
  backends: Backends,
  target: HostTarget = {},
): ExecutionBackend {
  const name = ownValue(execution.plugins, pluginId)?.backend ?? execution.default;
  if (name !== 'host' && Object.keys(target).length > 0)
    throw new PlatformError(
      'HOST_UNAVAILABLE',
      `The plugin ${pluginId} runs by the backend "${name}" here, so no host can be chosen for it; leave "target" out, or set execution.plugins["${pluginId}"].backend to "host".`,
      { details: { pluginId, backend: name, target } },
    );
  return backends[name];
}
