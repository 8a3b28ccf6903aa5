import type { ManifestV3 } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { permissionPlaces } from '../permission-sets.ts';
import type { PluginFault } from '../registry/types.ts';
import { grantedPath } from './grants.ts';
import type { GuardedPaths } from './guarded-paths.ts';
import { realPathOf } from './real-path.ts';

/**
 * Returns a fault for each entry of `permissions.fs` that the sandbox would refuse. The faults are then reported before
 * the plugin is called.
 */
export async function grantFaults(
  root: string,
  manifest: ManifestV3,
  guarded: GuardedPaths,
): Promise<PluginFault[]> {
  const faults: PluginFault[] = [];
  const real = { ...guarded, dataDir: await realPathOf(guarded.dataDir) };
  for (const { at, permissions } of permissionPlaces(manifest)) {
    for (const kind of ['read', 'write'] as const) {
      for (const [index, path] of (permissions.fs?.[kind] ?? []).entries()) {
        try {
          await grantedPath({ kind, index, path }, root, real);
        } catch (error) {
          if (!(error instanceof PlatformError)) throw error;
          faults.push({
            code: 'INVALID_MANIFEST',
            path: `${at}.fs.${kind}[${index}]`,
            message: error.message,
          });
        }
      }
    }
  }
  return faults;
}
