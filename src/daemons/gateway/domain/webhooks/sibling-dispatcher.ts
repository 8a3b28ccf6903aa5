import type { PrimaryProcess, SiblingProcess } from '../../../group/process-group.ts';
import type { LeadingDispatcher, WebhookDispatcher } from './dispatcher.ts';

const ACCEPTED = 'deliveries.accepted';
const BACKLOG = 'deliveries.backlog';

/**
 * Accepted here, run by the primary: `concurrency`, `orderBy`, retries and pauses then hold for all processes, and
 * nothing has to be taken over from one that died. What the primary does not hear of, it finds in the store.
 */
export function createSiblingDispatcher({ primary }: Pick<SiblingProcess, 'primary'>): WebhookDispatcher {
  let accepted: string[] = [];
  let telling: Promise<void> | undefined;
  const underWay = new Set<Promise<void>>();

  /** Settles when the primary has those in its queue, or is gone. */
  async function tellAtTurnsEnd(): Promise<void> {
    await new Promise((turnEnds) => setImmediate(turnEnds));
    const ids = accepted;
    accepted = [];
    telling = undefined;
    await primary.call(ACCEPTED, ids).catch(() => {});
  }

  function tell(webhookId: string): Promise<void> {
    accepted.push(webhookId);
    if (!telling) {
      const batch = tellAtTurnsEnd();
      telling = batch;
      underWay.add(batch);
      void batch.then(() => underWay.delete(batch));
    }
    return telling;
  }

  return {
    enqueue({ webhookId, orderKey }) {
      const told = tell(webhookId);
      // The sender of the next one in this order may reach another process the moment it has our answer.
      return orderKey === null ? undefined : told;
    },
    /** What is held is the primary's. */
    load: { waiting: 0, running: 0 },
    receiving() {},
    runBacklog: () => void primary.call(BACKLOG).catch(() => {}),
    async close() {
      await Promise.all(underWay);
    },
  };
}

/** The primary's end of it. */
export function leadDispatch(
  group: Pick<PrimaryProcess, 'answer' | 'onLost'>,
  dispatcher: LeadingDispatcher,
): void {
  let admitting = Promise.resolve();
  group.answer(ACCEPTED, (ids) => {
    // One message after the other: two that overlap would mix their deliveries.
    admitting = admitting.then(() => dispatcher.admit(ids as string[]));
    return admitting;
  });
  group.answer(BACKLOG, () => dispatcher.runBacklog());
  // It may have died between the commit and the word of it.
  group.onLost(() => dispatcher.runBacklog());
}
