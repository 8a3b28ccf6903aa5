import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';

interface InterruptedDeps {
  inbox: WebhookInbox;
  logger: Logger;
}

/**
 * Sets the status `interrupted` for deliveries that an ended gateway process left `running`. Must be called at the
 * first start on a store, before any delivery is received.
 */
export async function markInterrupted({ inbox, logger }: InterruptedDeps): Promise<void> {
  const interrupted = await inbox.interrupt();
  if (interrupted > 0)
    logger.warn(`${interrupted} deliveries were running when the gateway died; they show as interrupted`);
}
