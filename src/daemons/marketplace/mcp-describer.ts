import { instanceId } from '../../kit/files/instance-id.ts';
import {
  backendNameOf,
  ContainerBackend,
  createDescriber,
  type PluginDescriber,
  projectSecrets,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';

/**
 * Returns the describer of the runtime, which lists the tools of MCP servers in containers if the plugin will run in
 * them. The gateway runs containers of installed plugins only, so this service has containers of its own.
 */
export function withMcpContainers(
  resources: Resources,
  runtime: PluginRuntime,
  stack: AsyncDisposableStack,
): PluginDescriber {
  const { config, random } = resources;
  let opened: ContainerBackend | undefined;
  stack.defer(() => opened?.close());
  return {
    ...runtime.describer,
    mcpTools(plugin, permissions, tenantId) {
      if (backendNameOf(config.execution, plugin.id) !== 'container')
        return runtime.describer.mcpTools(plugin, permissions, tenantId);
      opened ??= createContainers(resources, runtime);
      return createDescriber(opened, random).mcpTools(plugin, permissions, tenantId);
    },
  };
}

function createContainers(resources: Resources, runtime: PluginRuntime): ContainerBackend {
  const { config, logger, clock, dataDir, env, random } = resources;
  return new ContainerBackend({
    ...{ config: config.execution.container, services: runtime.services, logger, clock, dataDir },
    instance: `${instanceId(dataDir, env, random)}-marketplace`,
    secrets: projectSecrets(resources),
    // The runner reaches the services of the platform over its own channel. It needs no token of the gateway.
    issueAccess: async () => ({ env: {}, end: async () => {} }),
  });
}
