import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';

interface InterruptedDeps {
  inbox: WebhookInbox;
  logger: Logger;
}

/**
 * Sets the status `interrupted` for sync deliveries that an ended gateway process left `running`, and `accepted` for
 * those whose sender was answered before the end of the handler. Must be called at the
 * first start on a store, before any delivery is received.
 */
export async function markInterrupted({ inbox, logger }: InterruptedDeps): Promise<void> {
  const resumed = await inbox.resume();
  if (resumed > 0)
    logger.warn(`${resumed} deliveries were answered but not handled when the gateway died; they run again`);
  const interrupted = await inbox.interrupt();
  if (interrupted > 0)
    logger.warn(`${interrupted} deliveries were running when the gateway died; they show as interrupted`);
}
