import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';
import type { PrimaryProcess, ProcessGroup } from '../../../../group/process-group.ts';

const UNDER_WAY = 'deliveries.underWay';

interface InterruptedDeps {
  inbox: WebhookInbox;
  clock: Clock;
  logger: Logger;
}

/**
 * Marks deliveries that an earlier gateway left `running` as interrupted. Must be called before any delivery is
 * received.
 */
export async function markInterrupted({ inbox, logger }: Pick<InterruptedDeps, 'inbox' | 'logger'>) {
  const interrupted = await inbox.interrupt();
  if (interrupted > 0)
    logger.warn(`${interrupted} deliveries were running when the gateway died; they show as interrupted`);
}

/** Marks sync deliveries as interrupted if the process that ran them has ended. */
export function watchInterrupted(
  group: ProcessGroup,
  inFlight: ReadonlySet<string>,
  { inbox, clock, logger }: InterruptedDeps,
): void {
  if (group.role === 'sibling') group.answer(UNDER_WAY, () => [...inFlight]);
  if (group.role !== 'primary') return;

  async function mark(receivedUntil: number): Promise<void> {
    const except = await inFlightAnywhere(group as PrimaryProcess, inFlight);
    const interrupted = await inbox.interrupt({ receivedUntil, except });
    if (interrupted > 0)
      logger.warn(`${interrupted} deliveries were running when a process died; they show as interrupted`);
  }
  group.onLost(() => {
    mark(clock.now()).catch((error) =>
      logger.warn('Deliveries of a dead process could not be marked as interrupted', { error }),
    );
  });
}

/**
 * Returns the ids of in-flight deliveries of all processes. Throws if one does not answer, so that nothing is marked by
 * mistake.
 */
async function inFlightAnywhere(group: PrimaryProcess, here: ReadonlySet<string>): Promise<string[]> {
  const others = await Promise.all(group.members().map((member) => member.call(UNDER_WAY)));
  return [...here, ...(others as string[][]).flat()];
}
