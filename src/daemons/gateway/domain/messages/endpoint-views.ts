import {
  DEFAULT_MESSAGE_TIMEOUT_MS,
  DEFAULT_RETRY_SCHEDULE,
  type OutgoingEndpoint,
} from '../../../../contracts/index.ts';
import { MASKED_VALUE } from '../../../../kit/data/recorded-headers.ts';
import type { Seal } from '../../../../kit/security/keys.ts';
import type { RecentAttempts, StoredEndpoint } from '../../../../store/ports/index.ts';
import { endpointContext } from './endpoint-registry.ts';

/** Returns an endpoint as the API shows it, without secrets and values of headers. */
export function endpointView(
  endpoint: StoredEndpoint,
  { seal, now, recent }: { seal: Seal; now: number; recent?: RecentAttempts | undefined },
): OutgoingEndpoint {
  const { attempts = 0, failed = 0 } = recent ?? {};
  const {
    secret: _,
    previousSecret,
    previousSecretExpiresAt,
    namespaceId: _namespace,
    publicOnly: _publicOnly,
    headers,
    ...shown
  } = endpoint;
  const hasPrevious =
    previousSecret !== null && previousSecretExpiresAt !== null && now < previousSecretExpiresAt;
  return {
    ...shown,
    headers: Object.fromEntries(headerNames(endpoint.id, headers, seal).map((name) => [name, MASKED_VALUE])),
    retrySchedule: endpoint.retrySchedule ?? [...DEFAULT_RETRY_SCHEDULE],
    timeoutMs: endpoint.timeoutMs ?? DEFAULT_MESSAGE_TIMEOUT_MS,
    disabled: endpoint.disabledReason !== null,
    previousSecretExpiresAt: hasPrevious ? previousSecretExpiresAt : null,
    recentAttempts: { total: attempts, succeeded: attempts - failed },
  };
}

function headerNames(id: string, headers: string | null, seal: Seal): string[] {
  if (headers === null) return [];
  try {
    return Object.keys(JSON.parse(seal.open(headers, endpointContext(id, 'headers'))) as object);
  } catch {
    // A damaged value must not make the endpoint invisible.
    return [];
  }
}
