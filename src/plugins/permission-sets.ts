import type { ManifestV3, Permissions } from '../contracts/index.ts';

/** Every set of permissions that a manifest declares: the plugin's, and those that routes and commands have instead. */
export function permissionSets({ permissions, rest, commands }: ManifestV3): Permissions[] {
  return [
    permissions,
    ...[...(rest?.routes ?? []), ...commands].flatMap((declared) => declared.permissions ?? []),
  ];
}
