import type { ExecutionRequest, Permissions } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformCallContext } from '../execution.ts';

/** The caller of a platform call. All fields come from the execution and none from plugin code. */
export interface CallScope {
  tenantId: string;
  user: ExecutionRequest['user'];
  requestId: string;
  traceId: string;
  spanId?: string | undefined;
  signal: AbortSignal;
}

export function callScope({ request, signal }: PlatformCallContext): CallScope {
  const { tenantId, user, requestId, traceId, spanId } = request;
  return { tenantId, user, requestId, traceId, spanId, signal };
}

/** Services that a manifest must request in `permissions.platform`. */
type AskedFor = Exclude<keyof NonNullable<Permissions['platform']>, 'state' | 'cache'>;

/** Throws PERMISSION_DENIED unless the manifest requests the service. */
export function requirePlatform({ permissions, plugin }: ExecutionRequest, service: AskedFor): void {
  if (permissions.platform?.[service] === true) return;
  throw new PlatformError(
    'PERMISSION_DENIED',
    `The plugin ${plugin.id} may not use ctx.${service}: its manifest must set permissions.platform.${service} to true.`,
    { details: { permission: `permissions.platform.${service}` } },
  );
}
