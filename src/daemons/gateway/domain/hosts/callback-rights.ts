import type { Permissions } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';

type Right = 'workflows' | 'dispatch';

/**
 * API path prefixes that containers are allowed to call, with the required permission of each prefix. Jobs require
 * `dispatch`, because the HTTP API can submit jobs of any plugin.
 */
const AREAS: ReadonlyArray<[prefix: string, right: Right]> = [
  ['/api/v1/workflows', 'workflows'],
  ['/workflows', 'workflows'],
  ['/api/v1/jobs', 'dispatch'],
  ['/api/v1/plugins', 'dispatch'],
  ['/internal/dispatch', 'dispatch'],
];

/** Throws PERMISSION_DENIED if the plugin's manifest does not permit its containers to call the path. */
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
