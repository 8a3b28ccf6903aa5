import type { PlatformConfig } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import {
  kernelSandboxFaults,
  type LoadedPlugin,
  type PluginFault,
  type SandboxInForce,
} from '../../plugins/index.ts';

/**
 * Creates the check that refuses plugins with the program of an MCP server where neither bubblewrap nor a container
 * confines it. @spec docs/mcp-servers.md
 */
export function createSandboxCheck(
  execution: PlatformConfig['execution'],
  sandbox: () => Promise<SandboxInForce>,
): (plugin: LoadedPlugin) => Promise<PluginFault[]> {
  return async ({ manifest }) => {
    if (manifest.mcpServer?.package === undefined) return [];
    const weakness = await sandbox().then(
      ({ mode, reason = mode }) => (mode === 'bwrap' ? undefined : reason),
      (error) => messageOf(error),
    );
    return weakness === undefined ? [] : kernelSandboxFaults(manifest, execution, weakness);
  };
}
