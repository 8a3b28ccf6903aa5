import type { Clock } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { WebhookInbox } from '../../../../store/ports/index.ts';
import type { PrimaryProcess, ProcessGroup } from '../../../group/process-group.ts';

const UNDER_WAY = 'deliveries.underWay';

interface InterruptedDeps {
  inbox: WebhookInbox;
  clock: Clock;
  logger: Logger;
}

/** Before anything is received: what is `running` in the store then, an earlier gateway was in the middle of. */
export async function markInterrupted({ inbox, logger }: Pick<InterruptedDeps, 'inbox' | 'logger'>) {
  const interrupted = await inbox.interrupt();
  if (interrupted > 0)
    logger.warn(`${interrupted} deliveries were running when the gateway died; they show as interrupted`);
}

/**
 * Sync deliveries that a dead process was in the middle of are shown as interrupted: those received before its end
 * that no living process has under way.
 */
export function watchInterrupted(
  group: ProcessGroup,
  underWay: ReadonlySet<string>,
  { inbox, clock, logger }: InterruptedDeps,
): void {
  if (group.role === 'sibling') group.answer(UNDER_WAY, () => [...underWay]);
  if (group.role !== 'primary') return;

  async function mark(receivedUntil: number): Promise<void> {
    const except = await underWayAnywhere(group as PrimaryProcess, underWay);
    const interrupted = await inbox.interrupt({ receivedUntil, except });
    if (interrupted > 0)
      logger.warn(`${interrupted} deliveries were running when a process died; they show as interrupted`);
  }
  group.onLost(() => {
    mark(clock.now()).catch((error) =>
      logger.warn('What a process that died was in the middle of could not be marked', { error }),
    );
  });
}

/** Throws when one does not answer: then nothing may be marked. */
async function underWayAnywhere(group: PrimaryProcess, here: ReadonlySet<string>): Promise<string[]> {
  const others = await Promise.all(group.members().map((member) => member.call(UNDER_WAY)));
  return [...here, ...(others as string[][]).flat()];
}
