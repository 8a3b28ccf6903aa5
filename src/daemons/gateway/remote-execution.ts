import type { ExecutionRequest, HostTarget, PlatformConfig } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import {
  type ContainerAccess,
  createContainerBackend,
  createHostBackend,
  type PlatformServices,
  projectSecrets,
} from '../../plugins/index.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { RemoteBackends } from '../plugin-runtime/backends.ts';
import type { RunningCode } from '../plugin-runtime/running-code.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { ContainerSockets } from './container-sockets.ts';
import {
  type ContainerCredentials,
  createContainerCredentials,
} from './domain/hosts/container-credentials.ts';
import { createDispatch } from './domain/hosts/dispatch.ts';
import { createExecutionClaims } from './domain/hosts/execution-claims.ts';
import { createHostSessions, type HostSessions } from './domain/hosts/sessions.ts';
import type { Jwts } from './domain/identity/jwt.ts';
import type { Revocations } from './domain/identity/revocations.ts';

/** Remote backends: created before the plugins are loaded, since manifest modules may run there. */
export interface RemoteExecution {
  sessions: HostSessions;
  sockets: ContainerSockets;
  create(services: PlatformServices, code: RunningCode): RemoteBackends;
  /** Sets the issuer of container credentials, once it exists. */
  useCredentials(credentials: ContainerCredentials): void;
  close(): void;
}

export function createRemoteExecution(resources: Resources): RemoteExecution {
  const { config, clock, logger, dataDir } = resources;
  const sessions = createHostSessions(clock);
  const sockets = new ContainerSockets(resources);
  let credentials: ContainerCredentials | undefined;
  const { plugins } = config.execution;

  function targetOf(pluginId: string): HostTarget {
    const { backend: _, ...target } = Object.hasOwn(plugins, pluginId)
      ? plugins[pluginId as keyof typeof plugins]!
      : { backend: 'host' };
    return target;
  }
  async function issueAccess(request: ExecutionRequest): Promise<ContainerAccess> {
    if (!credentials) throw new Error('No container runs before the gateway is built.');
    const { token, internalSecret, end } = await credentials.issue(request);
    const mayDispatch = request.permissions.platform?.dispatch === true;
    const env = { SVC_TOKEN: token, ...(mayDispatch ? { GATEWAY_INTERNAL_SECRET: internalSecret } : {}) };
    const socket = await sockets.open(request, token).catch(async (error: unknown) => {
      await end();
      throw error;
    });
    return {
      env,
      socket: socket.path,
      async end() {
        socket.close();
        await end();
      },
    };
  }

  function containers(services: PlatformServices, code: RunningCode) {
    const { container } = config.execution;
    const backend = createContainerBackend({
      config: container,
      services,
      logger,
      clock,
      dataDir,
      secrets: projectSecrets(resources),
      issueAccess,
      codeOf: (plugin) => code.codeOf(plugin),
    });
    if (usesContainers(config.execution)) {
      backend.removeOrphans().then(
        (count) => count > 0 && logger.warn(`Removed ${count} orphaned containers of an earlier gateway`),
        (error) => logger.warn(`Containers cannot run yet: ${messageOf(error)}`, { error }),
      );
    }
    return backend;
  }

  return {
    sessions,
    sockets,
    create: (services, code) => ({
      host: createHostBackend({ run: sessions.run, targetOf, clock }),
      container: containers(services, code),
    }),
    useCredentials(made) {
      credentials = made;
    },
    close() {
      sessions.close();
      sockets.close();
    },
  };
}

function usesContainers({ default: name, plugins }: PlatformConfig['execution']): boolean {
  return name === 'container' || Object.values(plugins).some(({ backend }) => backend === 'container');
}

export interface RemoteParts {
  store: GatewayStore;
  plugins: PluginRuntime;
  jwts: Jwts;
  revocations: Revocations;
}

/** Parts for the host socket and the internal dispatch. */
export async function remoteServices(
  { config, keys, clock, logger, group }: Resources,
  { sessions, sockets, useCredentials }: RemoteExecution,
  { store, plugins, jwts, revocations }: RemoteParts,
) {
  const { internalSecret } = keys;
  const { cache } = store;
  const credentials = createContainerCredentials({ jwts, revocations, cache, internalSecret, clock, logger });
  // Before the first call: containers of a killed gateway must lose access.
  if (group.role !== 'sibling') await credentials.revokeOrphans();
  useCredentials(credentials);
  return {
    hostSessions: sessions,
    containerSockets: sockets,
    hostStore: store.hosts,
    plugins,
    execution: config.execution,
    platformServices: plugins.services,
    dispatch: createDispatch({ plugins, claims: createExecutionClaims(group) }),
    credentials,
    internalSecret,
  };
}
