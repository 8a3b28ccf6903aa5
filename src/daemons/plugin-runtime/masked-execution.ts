import type { CommandResult, ExecutionRequest } from '../../contracts/index.ts';
import { createBoundedCache } from '../../kit/data/bounded-cache.ts';
import { maskedError, maskTenantSecretsIn } from '../../kit/telemetry/redact.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { callScope, type SecretAccess } from '../../plugins/index.ts';

/** Time for which the values of a handler's secrets count as known in this process. */
const KNOWN_MS = seconds(10);
const MAX_KNOWN = 10_000;

/** Runs a handler and masks the tenant's secrets in its result and errors. */
export type MaskedExecution = (
  request: ExecutionRequest,
  signal: AbortSignal | undefined,
  run: () => Promise<CommandResult>,
) => Promise<CommandResult>;

/**
 * Masks results where they leave the execution, so that no caller can record a secret. This process must know the values
 * for that, also those that the handler read in another process and stored. So it reads all secrets that the handler
 * may read, while the handler runs. @spec docs/secrets.md "Where values are masked"
 */
export function maskedExecution(secrets: SecretAccess, clock: Clock): MaskedExecution {
  const known = createBoundedCache<number>(MAX_KNOWN);

  async function learn(request: ExecutionRequest, signal: AbortSignal): Promise<void> {
    const names = request.permissions.secrets ?? [];
    if (names.length === 0) return;
    const key = JSON.stringify([request.tenantId, names]);
    const now = clock.monotonic();
    if (now - (known.get(key) ?? Number.NEGATIVE_INFINITY) < KNOWN_MS) return;
    await secrets.read(callScope({ request, signal }), names, false);
    known.set(key, now);
  }

  return async (request, signal, run) => {
    const { tenantId } = request;
    // If the gateway cannot be reached, the handler cannot read secrets either.
    const learned = learn(request, signal ?? new AbortController().signal).catch(() => {});
    try {
      const result = await run();
      await learned;
      return maskTenantSecretsIn(result, tenantId);
    } catch (error) {
      await learned;
      throw maskedError(error, tenantId);
    }
  };
}
