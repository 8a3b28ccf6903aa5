import type { Member, PrimaryProcess, SiblingProcess } from '../../../group/process-group.ts';
import type { LeadingDispatcher, WebhookDispatcher } from './dispatcher.ts';

/** Accepted by a sibling: with the 202 written, or with an order and the 202 still to be written. */
const ACCEPTED = 'deliveries.accepted';
const ORDERED = 'deliveries.ordered';
const ANSWERED = 'deliveries.answered';
const BACKLOG = 'deliveries.backlog';

/**
 * Accepted here, run by the primary: `concurrency`, `orderBy`, retries and pauses then hold for all processes, and
 * nothing has to be taken over from one that died. What the primary does not hear of, it finds in the store.
 */
export function createSiblingDispatcher({ primary }: Pick<SiblingProcess, 'primary'>): WebhookDispatcher {
  const underWay = new Set<Promise<void>>();
  const tellAccepted = createTeller(ACCEPTED);
  const tellOrdered = createTeller(ORDERED);
  const tellAnswered = createTeller(ANSWERED);
  /** Accepted and not answered yet; those with an order are known to the primary already. */
  const unanswered = new Map<string, 'accepted' | 'told'>();

  /** Gathers ids and sends them at the end of the turn. The promise settles when the primary has them, or is gone. */
  function createTeller(topic: string): (webhookId: string) => Promise<void> {
    let ids: string[] = [];
    let telling: Promise<void> | undefined;
    async function tellAtTurnsEnd(): Promise<void> {
      await new Promise((turnEnds) => setImmediate(turnEnds));
      const batch = ids;
      ids = [];
      telling = undefined;
      await primary.call(topic, batch).catch(() => {});
    }
    return (webhookId) => {
      ids.push(webhookId);
      if (!telling) {
        const batch = tellAtTurnsEnd();
        telling = batch;
        underWay.add(batch);
        void batch.then(() => underWay.delete(batch));
      }
      return telling;
    };
  }

  return {
    enqueue({ webhookId, orderKey }) {
      unanswered.set(webhookId, orderKey === null ? 'accepted' : 'told');
      // The sender of the next one in this order may reach another process the moment it has our answer.
      return orderKey === null ? undefined : tellOrdered(webhookId);
    },
    expectAnswer() {},
    answered(webhookId) {
      const state = unanswered.get(webhookId);
      unanswered.delete(webhookId);
      if (state) void (state === 'told' ? tellAnswered : tellAccepted)(webhookId);
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
  /** Deliveries with an order whose 202 a sibling has not written yet. */
  const unanswered = new Map<Member, Set<string>>();

  /** One message after the other: two that overlap would mix their deliveries. */
  function admit(ids: string[]): Promise<void> {
    admitting = admitting.then(() => dispatcher.admit(ids));
    return admitting;
  }

  group.answer(ACCEPTED, (ids) => admit(ids as string[]));
  group.answer(ORDERED, (ids, from) => {
    const held = unanswered.get(from) ?? new Set();
    unanswered.set(from, held);
    for (const id of ids as string[]) {
      held.add(id);
      dispatcher.expectAnswer(id);
    }
    return admit(ids as string[]);
  });
  group.answer(ANSWERED, (ids, from) => {
    for (const id of ids as string[]) {
      unanswered.get(from)?.delete(id);
      dispatcher.answered(id);
    }
  });
  group.answer(BACKLOG, () => dispatcher.runBacklog());
  group.onLost((member) => {
    for (const id of unanswered.get(member) ?? []) dispatcher.answered(id);
    unanswered.delete(member);
    // It may have died between the commit and the word of it.
    dispatcher.runBacklog();
  });
}
