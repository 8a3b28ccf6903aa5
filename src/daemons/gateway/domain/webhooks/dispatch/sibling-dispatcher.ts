import type { Member, PrimaryProcess, SiblingProcess } from '../../../../group/process-group.ts';
import type { PrimaryDispatcher, WebhookDispatcher } from './webhook-dispatcher.ts';

/**
 * Topics of a sibling's messages. Without an order key, `ACCEPTED` is sent after the 202. With an order key, `ORDERED`
 * is sent before the 202 and `ANSWERED` after it.
 */
const ACCEPTED = 'deliveries.accepted';
const ORDERED = 'deliveries.ordered';
const ANSWERED = 'deliveries.answered';
const BACKLOG = 'deliveries.backlog';

/**
 * Reports the deliveries that this process accepted to the primary, which runs them. `concurrency`, `orderBy`, retries
 * and pauses thus apply across all processes. The primary finds deliveries that were not reported in the store.
 */
export function createSiblingDispatcher({ primary }: Pick<SiblingProcess, 'primary'>): WebhookDispatcher {
  const inFlight = new Set<Promise<void>>();
  const reportAccepted = createReporter(ACCEPTED);
  const reportOrdered = createReporter(ORDERED);
  const reportAnswered = createReporter(ANSWERED);
  /**
   * Accepted deliveries whose response is not written yet. The value is `told` if the primary already knows the
   * delivery, because it has an order key.
   */
  const unanswered = new Map<string, 'accepted' | 'told'>();

  /**
   * Collects ids until the end of the event loop turn and sends them together. The promise settles when the primary has
   * them or is unavailable.
   */
  function createReporter(topic: string): (webhookId: string) => Promise<void> {
    let ids: string[] = [];
    let sending: Promise<void> | undefined;
    async function sendAtTurnsEnd(): Promise<void> {
      await new Promise((turnEnds) => setImmediate(turnEnds));
      const batch = ids;
      ids = [];
      sending = undefined;
      await primary.call(topic, batch).catch(() => {});
    }
    return (webhookId) => {
      ids.push(webhookId);
      if (!sending) {
        const batch = sendAtTurnsEnd();
        sending = batch;
        inFlight.add(batch);
        void batch.then(() => inFlight.delete(batch));
      }
      return sending;
    };
  }

  return {
    enqueue({ webhookId, orderKey }) {
      unanswered.set(webhookId, orderKey === null ? 'accepted' : 'told');
      // After the response, the sender may send the next delivery with this order key to another process.
      return orderKey === null ? undefined : reportOrdered(webhookId);
    },
    expectAnswer() {},
    answered(webhookId) {
      const state = unanswered.get(webhookId);
      unanswered.delete(webhookId);
      if (state) void (state === 'told' ? reportAnswered : reportAccepted)(webhookId);
    },
    /** Waiting deliveries are counted by the primary, which has all of them. */
    load: { waiting: 0, running: 0 },
    receiving() {},
    runBacklog: () => void primary.call(BACKLOG).catch(() => {}),
    async close() {
      await Promise.all(inFlight);
    },
  };
}

/** Receives the deliveries that sibling processes report to the primary. */
export function serveSiblings(
  group: Pick<PrimaryProcess, 'answer' | 'onLost'>,
  dispatcher: PrimaryDispatcher,
): void {
  let admitting = Promise.resolve();
  /** Deliveries with an order key whose 202 the sibling has not written yet, by sibling. */
  const unanswered = new Map<Member, Set<string>>();

  /** Admits one batch after another, because concurrent batches could change the order of deliveries. */
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
    // The sibling may have ended after it stored a delivery and before it reported it.
    dispatcher.runBacklog();
  });
}
