import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';
import type { WebhookPauses } from '../admin/pauses.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import type { NeededServices } from './needed-services.ts';

export interface RunnableTargetsDeps {
  targets: Pick<WebhookTargets, 'of'>;
  pauses: Pick<WebhookPauses, 'isPaused'>;
  /** State of the services that plugins call. If undefined, all services count as available. */
  services?: Pick<NeededServices, 'isUnavailable'>;
  logger: Logger;
}

/** Finds the webhooks whose stored deliveries can run now. */
export class RunnableTargets {
  readonly #deps: RunnableTargetsDeps;
  /** Webhooks already reported as blocked on their plugin. */
  readonly #reported = new Set<string>();

  constructor(deps: RunnableTargetsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the current webhook of a delivery. Returns undefined if the webhook is paused, or if its plugin or a
   * required service is unavailable. The delivery then stays in the store.
   */
  find(delivery: NewDelivery): DeclaredWebhook | undefined {
    const { pauses, targets, services, logger } = this.#deps;
    if (pauses.isPaused(delivery)) return undefined;
    const { pluginId, event } = delivery;
    const target = targets.of(delivery);
    const name = `${pluginId} ${event}`;
    if (target) this.#reported.delete(name);
    else if (!this.#reported.has(name)) {
      this.#reported.add(name);
      logger.warn(`Accepted deliveries of ${name} wait: the plugin is not loaded with this webhook`, {
        pluginId,
      });
    }
    return target && services?.isUnavailable(target) ? undefined : target;
  }
}
