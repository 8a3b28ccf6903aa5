import type { ExecutionRequest, Permissions } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformCallContext } from '../execution.ts';

/** Identifies the caller of a platform service. All fields come from the execution request, never from plugin code. */
export interface CallScope {
  tenantId: string;
  user: ExecutionRequest['user'];
  requestId: string;
  traceId: string;
  spanId?: string | undefined;
  /** Delivery whose handler makes the call. */
  deliveryId?: string | undefined;
  signal: AbortSignal;
}

export function callScope({ request, signal }: PlatformCallContext): CallScope {
  const { tenantId, user, requestId, traceId, spanId, hostContext } = request;
  const { host, webhookId } = hostContext;
  const delivery = host === 'webhook' && typeof webhookId === 'string' ? { deliveryId: webhookId } : {};
  return { tenantId, user, requestId, traceId, spanId, ...delivery, signal };
}

/** Names of services that a manifest must request in `permissions.platform`. */
type AskedFor = Exclude<keyof NonNullable<Permissions['platform']>, 'state' | 'cache'>;

/** Throws PERMISSION_DENIED if the manifest does not request the service in `permissions.platform`. */
export function requirePlatform({ permissions, plugin }: ExecutionRequest, service: AskedFor): void {
  if (permissions.platform?.[service] === true) return;
  throw new PlatformError(
    'PERMISSION_DENIED',
    `The plugin ${plugin.id} may not use ctx.${service}: its manifest must set permissions.platform.${service} to true.`,
    { details: { permission: `permissions.platform.${service}` } },
  );
}
