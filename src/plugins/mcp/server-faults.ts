import type { ManifestV3, PlatformConfig } from '../../contracts/index.ts';
import { backendNameOf } from '../backend-name.ts';
import { permissionPlaces } from '../permission-sets.ts';
import type { PluginFault } from '../registry/types.ts';
import { needsKernelSandbox } from '../sandbox/index.ts';
import { toolDigest } from './tool-digest.ts';
import { toolSchemaFault } from './tool-schemas.ts';

/** Returns the faults of the MCP server that a manifest wraps. */
export function mcpServerFaults(manifest: ManifestV3): PluginFault[] {
  const { mcpServer } = manifest;
  if (!mcpServer) return [];
  const fault = (path: string, message: string): PluginFault => ({ code: 'INVALID_MANIFEST', path, message });
  const places = permissionPlaces(manifest);
  return [
    ...(mcpServer.url === undefined ? places : []).flatMap(({ at, permissions }) =>
      permissions.platform?.childProcess === 'sandboxed'
        ? []
        : [fault(`${at}.platform.childProcess`, 'must be "sandboxed", because the server is a program')],
    ),
    ...Object.entries(mcpServer.secrets).flatMap(([name, secret]) =>
      places.every(({ permissions }) => permissions.secrets?.includes(secret))
        ? []
        : [fault(`mcpServer.secrets.${name}`, `needs "${secret}" under permissions.secrets`)],
    ),
    ...mcpServer.tools.flatMap(({ digest, ...tool }, index) => {
      const at = `mcpServer.tools[${index}]`;
      if (toolDigest(tool) !== digest) return [fault(`${at}.digest`, 'is not the digest of this tool')];
      return (['inputSchema', 'outputSchema'] as const).flatMap((key) => {
        const reason = tool[key] && toolSchemaFault(tool[key]);
        return reason ? [fault(`${at}.${key}`, `is refused: ${reason}`)] : [];
      });
    }),
  ];
}

/**
 * Returns a fault for each permission that needs a sandbox of the kernel, unless the plugin runs in containers, or on
 * hosts, whose agents check it. `weakness` is the reason why bubblewrap is not in use.
 */
export function kernelSandboxFaults(
  manifest: ManifestV3,
  execution: PlatformConfig['execution'],
  weakness: string,
): PluginFault[] {
  if (backendNameOf(execution, manifest.id) !== 'worker') return [];
  return permissionPlaces(manifest)
    .filter(({ permissions }) => permissions.platform?.childProcess === 'sandboxed')
    .map(({ at }) => ({
      code: 'SANDBOX_ERROR',
      path: `${at}.platform.childProcess`,
      message: needsKernelSandbox(weakness),
    }));
}
