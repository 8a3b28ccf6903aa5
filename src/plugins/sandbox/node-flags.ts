import process from 'node:process';
import type { Permissions } from '../../contracts/index.ts';
import type { Grants } from './grants.ts';

/** Whether Node's permission model restricts network access, as in Node 25 and later versions. */
export const nodeGuardsNetwork = process.allowedNodeEnvironmentFlags.has('--allow-net');

/**
 * Returns whether the plugin is allowed to open connections to any address directly, instead of through `ctx.fetch`.
 */
export function hasRawNetwork(permissions: Permissions): boolean {
  return permissions.network.includes('*');
}

/**
 * Returns V8's heap limit in MB. The limit is below the process's memory limit, so that V8 fails first with a clear
 * message.
 */
function heapMb(memoryMb: number): number {
  return Math.max(24, Math.floor(memoryMb * 0.75));
}

/**
 * Returns Node's command-line flags for a plugin's process. The flags forbid workers, addons, WASI, the inspector, FFI
 * and `node:sqlite`. `node:sqlite` would write files without checking the permission model.
 */
export function nodeFlags(grants: Grants, permissions: Permissions, memoryMb: number): string[] {
  const flags = [
    '--permission',
    ...grants.read.map((path) => `--allow-fs-read=${path}`),
    ...grants.write.map((path) => `--allow-fs-write=${path}`),
    '--no-warnings',
    `--max-old-space-size=${heapMb(memoryMb)}`,
  ];
  for (const flag of ['--no-experimental-sqlite', '--no-experimental-ffi']) {
    if (process.allowedNodeEnvironmentFlags.has(flag)) flags.push(flag);
  }
  if (permissions.platform?.childProcess) flags.push('--allow-child-process');
  // Only bubblewrap and containers run such a plugin, and their `/tmp` is private.
  if (permissions.platform?.childProcess === 'sandboxed')
    flags.push('--allow-fs-read=/tmp', '--allow-fs-write=/tmp');
  // Programs in the sandbox reach the platform over its loopback interface. The kernel denies them all other networks.
  const isConfined = permissions.platform?.childProcess === 'sandboxed';
  if (nodeGuardsNetwork && (isConfined || hasRawNetwork(permissions))) flags.push('--allow-net');
  return flags;
}
