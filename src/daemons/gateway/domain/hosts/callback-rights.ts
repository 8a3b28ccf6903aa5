import type { Permissions } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';

type Right = 'workflows' | 'dispatch';

/**
 * The permission under `permissions.platform` that each part of the API requires of a container. Jobs require
 * `dispatch`, because the API, unlike `ctx.jobs`, submits jobs of any plugin.
 */
const AREAS: ReadonlyArray<[prefix: string, right: Right]> = [
  ['/api/v1/workflows', 'workflows'],
  ['/workflows', 'workflows'],
  ['/api/v1/jobs', 'dispatch'],
  ['/api/v1/plugins', 'dispatch'],
  ['/internal/dispatch', 'dispatch'],
];

/** Throws PERMISSION_DENIED for a path that the manifest does not permit to the plugin's containers. */
export function requireCallbackRight(target: string, permissions: Permissions): void {
  const path = target.split('?', 1)[0]!;
  const area = AREAS.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
  if (!area)
    throw new PlatformError(
      'PERMISSION_DENIED',
      `A container cannot call ${path.slice(0, 200)}; it can call ${AREAS.map(([prefix]) => prefix).join(', ')}. Use the plugin's ctx for anything else.`,
    );
  const [, right] = area;
  if (permissions.platform?.[right]) return;
  throw new PlatformError(
    'PERMISSION_DENIED',
    `The manifest does not request permissions.platform.${right}, which ${path.slice(0, 200)} requires.`,
    { details: { permission: `platform.${right}` } },
  );
}
