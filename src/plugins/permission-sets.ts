import type { ManifestV3, Permissions } from '../contracts/index.ts';

/** A set of permissions, and where the manifest declares it. */
export interface PermissionPlace {
  at: string;
  permissions: Permissions;
}

/** Every set of permissions that a manifest declares: the plugin's, and those that routes and commands have instead. */
export function permissionPlaces({ permissions, rest, commands }: ManifestV3): PermissionPlace[] {
  const own = (at: string, set: Permissions | undefined): PermissionPlace[] =>
    set ? [{ at: `${at}.permissions`, permissions: set }] : [];
  return [
    { at: 'permissions', permissions },
    ...(rest?.routes ?? []).flatMap((route, index) => own(`rest.routes[${index}]`, route.permissions)),
    ...commands.flatMap((command, index) => own(`commands[${index}]`, command.permissions)),
  ];
}

export function permissionSets(manifest: ManifestV3): Permissions[] {
  return permissionPlaces(manifest).map(({ permissions }) => permissions);
}
