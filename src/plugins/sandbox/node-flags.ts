import process from 'node:process';
import type { Permissions } from '../../contracts/index.ts';
import type { Grants } from './grants.ts';

/** Whether this Node's permission model guards the network: from version 25 on. */
export const nodeGuardsNetwork = process.allowedNodeEnvironmentFlags.has('--allow-net');

/** A plugin that may open any connection by itself. */
export function hasRawNetwork(permissions: Permissions): boolean {
  return permissions.network.includes('*');
}

/** The heap gives way before the watched resident memory does, so that running out of it says so. */
function heapMb(memoryMb: number): number {
  return Math.max(24, Math.floor(memoryMb * 0.75));
}

/**
 * Node's flags for a plugin's process. Workers, addons, WASI, the inspector and FFI stay denied;
 * `node:sqlite` is switched off because it writes files past the permission model.
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
