import process from 'node:process';
import type { Permissions } from '../../contracts/index.ts';
import type { Grants } from './grants.ts';

/** Whether Node's permission model restricts the network: since version 25. */
export const nodeGuardsNetwork = process.allowedNodeEnvironmentFlags.has('--allow-net');

/** Whether the plugin may open arbitrary connections itself. */
export function hasRawNetwork(permissions: Permissions): boolean {
  return permissions.network.includes('*');
}

/** Returns V8's heap limit. It is below the limit of resident memory, so that V8 fails first with a clear message. */
function heapMb(memoryMb: number): number {
  return Math.max(24, Math.floor(memoryMb * 0.75));
}

/**
 * Node's flags for a plugin's process. Workers, addons, WASI, the inspector and FFI stay denied;
 * `node:sqlite` is disabled because it bypasses the permission model when it writes files.
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
  if (nodeGuardsNetwork && hasRawNetwork(permissions)) flags.push('--allow-net');
  return flags;
}
