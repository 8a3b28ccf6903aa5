import type { ManifestV3, Permissions } from '../contracts/index.ts';
import { isRecord } from '../kit/data/is-record.ts';

/** A permission set and its path in the manifest, such as `commands[0].permissions`. */
export interface PermissionPlace {
  at: string;
  permissions: Permissions;
}

/** Returns the plugin's permission set, and the sets of routes and commands that override the plugin's set. */
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

/** Returns the `fs.write` paths of all permission sets in an unvalidated manifest. */
export function declaredWrites(manifest: unknown): string[] {
  if (!isRecord(manifest)) return [];
  const { rest, commands } = manifest;
  const owners = [manifest, ...listOf(isRecord(rest) ? rest.routes : undefined), ...listOf(commands)];
  return owners
    .flatMap((owner) => {
      const permissions = isRecord(owner) ? owner.permissions : undefined;
      const fs = isRecord(permissions) ? permissions.fs : undefined;
      return listOf(isRecord(fs) ? fs.write : undefined);
    })
    .filter((path) => typeof path === 'string');
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
