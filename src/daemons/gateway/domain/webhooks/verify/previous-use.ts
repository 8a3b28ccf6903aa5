import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { hours, minutes } from '../../../../../kit/time/duration.ts';
import type { SecretKey, WebhookSecretStore } from '../../../../../store/ports/index.ts';
import { describeEndpoint } from '../receive/endpoint-name.ts';
import type { VerificationKeys } from './verification-key.ts';

/** Minimum time between two writes of the last use of a secret, in ms. */
const WRITE_EVERY_MS = minutes(1);
/**
 * Time before the expiry of a previous secret, in ms. The first use of the secret within this time is logged as a
 * warning.
 */
const WARN_BEFORE_END_MS = hours(4);
/** Maximum number of webhooks whose previous secret is tracked. The map is cleared when it is full. */
const REMEMBERED = 10_000;

interface PreviousUseDeps {
  store: WebhookSecretStore;
  clock: Clock;
  logger: Logger;
}

/**
 * Stores the time of the latest use of a previous secret. Logs a warning if the secret is used shortly before its
 * expiry. @spec States: Webhook secret
 */
export class PreviousUse {
  readonly #deps: PreviousUseDeps;
  /** `writtenAt` is the time of the last write, on the monotonic clock. */
  readonly #seen = new Map<string, { writtenAt: number; warned: boolean }>();

  constructor(deps: PreviousUseDeps) {
    this.#deps = deps;
  }

  note(key: SecretKey, { previousExpiresAt }: VerificationKeys): void {
    const { store, clock, logger } = this.#deps;
    const now = clock.now();
    const endsAt = previousExpiresAt ?? now;
    const id = JSON.stringify([key.namespaceId, key.pluginId, key.event, key.instanceId, endsAt]);
    const before = this.#seen.get(id);
    const due = !before || clock.monotonic() - before.writtenAt >= WRITE_EVERY_MS;
    const mustWarn = !before?.warned && endsAt - now <= WARN_BEFORE_END_MS;
    if (!due && !mustWarn) return;
    if (this.#seen.size >= REMEMBERED) this.#seen.clear();
    const writtenAt = due ? clock.monotonic() : before.writtenAt;
    this.#seen.set(id, { writtenAt, warned: mustWarn || (before?.warned ?? false) });
    if (mustWarn) this.#warn(key, endsAt);
    if (due) {
      store.previousUsed(key, now).catch((error: unknown) => {
        logger.warn('The last use of a previous webhook secret could not be stored', { error });
      });
    }
  }

  #warn(key: SecretKey, endsAt: number): void {
    this.#deps.logger.diagnostic(
      {
        domain: 'webhook',
        event: 'webhook.rotation_unfinished',
        level: 'warn',
        reasonCode: 'PREVIOUS_SECRET_IN_USE',
        message: `A sender of ${describeEndpoint(key)} still uses the previous secret, which expires at ${new Date(endsAt).toISOString()}: configure the new one there`,
        outcome: 'degraded',
        evidence: { previousExpiresAt: endsAt },
      },
      { tenantId: key.namespaceId, pluginId: key.pluginId },
    );
  }
}
