import type { HostTarget, PlatformConfig } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import {
  backendNameOf,
  type ConnectionAccess,
  createPlatformServices,
  type ExecutionBackend,
  ExecutionListeners,
  type InvokeCommand,
  type PlatformServices,
  projectSecrets,
  type SecretAccess,
  type StepAccess,
  type WebhookAccess,
  WorkerBackend,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { createAdapters } from './access/adapters.ts';
import { createConnectionAccess } from './access/connections.ts';
import { createSecretAccess } from './access/secrets.ts';
import { createStateAccess } from './access/state.ts';
import { createStepAccess } from './access/steps.ts';
import { createEmitAccess, createTaskAccess, createWebhookAccess } from './access/tasks.ts';
import { gatewayDispatch } from './gateway-dispatch.ts';
import { maskedExecution } from './masked-execution.ts';
import { PermissionUse } from './permission-use.ts';
import type { RunningCode } from './running-code.ts';
import { type OnServiceCall, watchedServices } from './watched-services.ts';

type BackendName = PlatformConfig['execution']['default'];
/** Backends for containers and hosts. Only the gateway creates these backends. The other services call the gateway. */
export type RemoteBackends = Record<Exclude<BackendName, 'worker'>, ExecutionBackend>;
export type CreateRemoteBackends = (services: PlatformServices, code: RunningCode) => RemoteBackends;

/** Implementations that a service provides itself instead of calling another service. */
export interface OwnParts {
  createRemoteBackends?: CreateRemoteBackends;
  webhooks?: WebhookAccess;
  /** Access to secrets. Only the gateway sets it, because it stores them. */
  secrets?: SecretAccess;
  /** Access to connections. Only the gateway sets it, because it stores them. */
  connections?: ConnectionAccess;
  /** Callback that is called before each platform call of a handler. */
  onServiceCall?: OnServiceCall;
  /** Access to the steps of runs. Only the workflow service sets it, because it can access its runs directly. */
  steps?: StepAccess;
  /**
   * Whether this service reports plugin faults. Every service finds the same faults, so one reporting service is
   * enough.
   */
  reportsPlugins?: boolean;
}

type Backends = RemoteBackends & { worker: WorkerBackend };

/** Creates the platform services for handlers, and the backends that run the handlers. */
export function createBackends(
  resources: Resources,
  invoke: InvokeCommand,
  code: RunningCode,
  own: OwnParts,
) {
  const { config, dataDir, logger, clock, analytics, stubFetch } = resources;
  const secrets = own.secrets ?? createSecretAccess(resources);
  const listeners = new ExecutionListeners();
  const offered = createPlatformServices({
    listeners,
    state: createStateAccess(resources),
    logger,
    clock,
    invoke,
    analytics,
    fetch: { privateHosts: config.execution.privateHosts, ...(stubFetch ? { stub: stubFetch } : {}) },
    ...createTaskAccess(resources),
    adapters: createAdapters(resources, secrets),
    steps: own.steps ?? createStepAccess(resources),
    webhooks: own.webhooks ?? createWebhookAccess(resources),
    messages: createEmitAccess(resources),
    secrets,
    connections: own.connections ?? createConnectionAccess(resources),
  });
  const use = new PermissionUse({ analytics, clock });
  const services = watchedServices(offered, (context, service, args) => {
    use.note(context, service, args);
    own.onServiceCall?.(context.request.plugin.id, service);
  });
  const worker = new WorkerBackend({
    ...{
      config: config.execution.worker,
      services,
      logger,
      clock,
      dataDir,
      secrets: projectSecrets(resources),
    },
    onSandbox: resources.onSandbox,
    codeOf: (plugin) => code.codeOf(plugin),
  });
  const remote = (own.createRemoteBackends ?? throughGateway(resources))(services, code);
  const backends: Backends = { ...remote, worker };
  return { services, backends, listeners, mask: maskedExecution(secrets, clock) };
}

function throughGateway(resources: Resources): CreateRemoteBackends {
  return () => ({
    container: gatewayDispatch('container', resources),
    host: gatewayDispatch('host', resources),
  });
}

/**
 * Returns the configured backend. A fallback could lack the required isolation, so there is no fallback. Throws
 * HOST_UNAVAILABLE if `target` selects a host for a plugin that does not run on hosts.
 */
export function backendFor(
  execution: PlatformConfig['execution'],
  pluginId: string,
  backends: Backends,
  target: HostTarget = {},
): ExecutionBackend {
  const name = backendNameOf(execution, pluginId);
  if (name !== 'host' && Object.keys(target).length > 0)
    throw new PlatformError(
      'HOST_UNAVAILABLE',
      `The plugin ${pluginId} uses the backend "${name}", so no host can be selected for it; omit "target", or set execution.plugins["${pluginId}"].backend to "host".`,
      { details: { pluginId, backend: name, target } },
    );
  return backends[name];
}
