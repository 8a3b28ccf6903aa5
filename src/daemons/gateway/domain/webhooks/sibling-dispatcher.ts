import type { Member, PrimaryProcess, SiblingProcess } from '../../../group/process-group.ts';
import type { LeadingDispatcher, WebhookDispatcher } from './dispatcher.ts';

/** Deliveries accepted by a sibling: with the 202 written, or with an order key and the 202 pending. */
const ACCEPTED = 'deliveries.accepted';
const ORDERED = 'deliveries.ordered';
const ANSWERED = 'deliveries.answered';
const BACKLOG = 'deliveries.backlog';

/**
 * Deliveries accepted here are run by the primary, so that `concurrency`, `orderBy`, retries and pauses apply
 * to all processes and nothing must be recovered from a dead sibling. The primary finds unreported ones in
 * the store.
 */
export function createSiblingDispatcher({ primary }: Pick<SiblingProcess, 'primary'>): WebhookDispatcher {
  const underWay = new Set<Promise<void>>();
  const tellAccepted = createTeller(ACCEPTED);
  const tellOrdered = createTeller(ORDERED);
  const tellAnswered = createTeller(ANSWERED);
  /** Accepted deliveries without a response; those with an order key are already reported to the primary. */
  const unanswered = new Map<string, 'accepted' | 'told'>();

  /** Batches ids until the end of the turn. The promise settles when the primary has them or is down. */
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
      // The sender may deliver the next one in this order to another process as soon as it has our response.
      return orderKey === null ? undefined : tellOrdered(webhookId);
    },
    expectAnswer() {},
    answered(webhookId) {
      const state = unanswered.get(webhookId);
      unanswered.delete(webhookId);
      if (state) void (state === 'told' ? tellAnswered : tellAccepted)(webhookId);
    },
    /** The primary holds all waiting deliveries. */
    load: { waiting: 0, running: 0 },
    receiving() {},
    runBacklog: () => void primary.call(BACKLOG).catch(() => {}),
    async close() {
      await Promise.all(underWay);
    },
  };
}

/** The primary's side of the protocol. */
export function leadDispatch(
  group: Pick<PrimaryProcess, 'answer' | 'onLost'>,
  dispatcher: LeadingDispatcher,
): void {
  let admitting = Promise.resolve();
  /** Ordered deliveries whose 202 a sibling has not written yet. */
  const unanswered = new Map<Member, Set<string>>();

  /** Serializes messages: overlapping ones would mix up their deliveries. */
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
    // The sibling may have died between a commit and its report.
    dispatcher.runBacklog();
  });
}
