import type { HostTarget, PlatformConfig } from '../../contracts/index.ts';
import { ownValue } from '../../kit/data/own-value.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { instanceId, instancesOf } from '../../kit/files/instance-id.ts';
import {
  ContainerBackend,
  createHostBackend,
  type PlatformServices,
  projectSecrets,
  type RunOnHost,
} from '../../plugins/index.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ChangeFeed } from '../membership/change-feed.ts';
import type { Membership } from '../membership/membership.ts';
import type { CreateRemoteBackends, RemoteBackends } from '../plugin-runtime/backends.ts';
import { createDispatchClient } from '../plugin-runtime/gateway-dispatch.ts';
import type { RunningCode } from '../plugin-runtime/running-code.ts';
import { type ContainerAccessDeps, issueContainerAccess } from './container-access.ts';
import { ContainerSockets } from './container-sockets.ts';
import { createContainerCredentials } from './domain/hosts/container-credentials.ts';
import { OwnerCalls, runOnAnyGateway } from './domain/hosts/owner-calls.ts';
import { HostSessions } from './domain/hosts/sessions.ts';
import type { IdentityServices } from './identity-services.ts';

export interface RemoteExecutionDeps {
  store: GatewayStore;
  membership: Membership;
  feed: ChangeFeed;
  identity: IdentityServices;
}

/**
 * Opens the services for executions on hosts and in containers. Must be called before the plugins are loaded, because
 * plugins use these services during their start.
 */
export async function remoteExecution(
  resources: Resources,
  { store, identity, membership, feed }: RemoteExecutionDeps,
  stack: AsyncDisposableStack,
) {
  const { keys, clock, logger } = resources;
  const { members } = store;
  const { jwts, revocations } = identity;
  const sessions = stack.adopt(new HostSessions(clock), (opened) => opened.close());
  const sockets = stack.adopt(new ContainerSockets(resources), (opened) => opened.close());
  const credentials = createContainerCredentials({
    ...{ jwts, revocations, cache: store.cache, members, fence: membership, clock, logger },
    internalSecret: keys.internalSecret,
  });
  const owners = ownerCalls(resources, { store, membership }, stack);
  feed.follow('hosts', (hostIds) => sessions.closeReplaced(hostIds, store.hosts));
  membership.onEnded(async () => {
    await Promise.all([credentials.revokeOrphans(), store.hosts.disconnectEnded(clock.now())]);
  });
  return {
    hostSessions: sessions,
    containerSockets: sockets,
    hostStore: store.hosts,
    credentials,
    createRemoteBackends: backendsOf(resources, {
      runOnHost: runOnAnyGateway(sessions, owners),
      instance: membership.instance,
      access: { credentials, sockets },
    }),
  };
}

interface RemoteBackendDeps {
  runOnHost: RunOnHost;
  /** Instance id of this member of the store. */
  instance: string;
  access: ContainerAccessDeps;
}

function backendsOf(resources: Resources, deps: RemoteBackendDeps): CreateRemoteBackends {
  return (services, code) => ({
    host: hostBackend(resources, deps.runOnHost),
    container: containerBackend(resources, deps, { services, code }),
  });
}

/**
 * Returns the client that runs calls on hosts connected to other gateways. Returns undefined if no other node uses the
 * store.
 */
function ownerCalls(
  { keys, sharesStore }: Resources,
  { store, membership }: Pick<RemoteExecutionDeps, 'store' | 'membership'>,
  stack: AsyncDisposableStack,
): OwnerCalls | undefined {
  if (!sharesStore) return undefined;
  const dispatch = stack.adopt(createDispatchClient(keys.internalSecret), (opened) => opened.close());
  return new OwnerCalls({ hosts: store.hosts, members: store.members, fence: membership, dispatch });
}

function hostBackend({ config, clock }: Resources, runOnHost: RunOnHost): RemoteBackends['host'] {
  const { plugins } = config.execution;
  return createHostBackend({
    run: runOnHost,
    targetOf(pluginId): HostTarget {
      const { backend: _, ...target } = ownValue(plugins, pluginId) ?? { backend: 'host' };
      return target;
    },
    clock,
  });
}

function containerBackend(
  resources: Resources,
  { access, instance }: Pick<RemoteBackendDeps, 'access' | 'instance'>,
  { services, code }: { services: PlatformServices; code: RunningCode },
): RemoteBackends['container'] {
  const { config, logger, clock, dataDir, env, random, portShare } = resources;
  const backend = new ContainerBackend({
    config: config.execution.container,
    services,
    logger,
    clock,
    dataDir,
    instance,
    // Without other running processes, the containers of all former processes of the node are orphans.
    endedInstances: portShare?.joins ? [] : instancesOf(instanceId(dataDir, env, random)),
    secrets: projectSecrets(resources),
    issueAccess: (request) => issueContainerAccess(access, request),
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

function usesContainers({ default: name, plugins }: PlatformConfig['execution']): boolean {
  return name === 'container' || Object.values(plugins).some(({ backend }) => backend === 'container');
}
