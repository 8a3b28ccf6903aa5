import { createDeadlines } from '../../../../kit/deadlines.ts';
import { seconds } from '../../../../kit/duration.ts';
import type { DeliveryRecord, NewDelivery } from '../../../../store/ports/index.ts';
import { AnswerGate } from './answer-gate.ts';
import { AttemptTimers } from './attempt-timers.ts';
import { type AttemptsDeps, createAttempts, type QueuedDelivery } from './attempts.ts';
import { endpointName } from './endpoint-name.ts';
import type { NeededServices } from './needed-services.ts';
import type { WebhookPauses } from './pauses.ts';
import { type JsonPayload, payloadOf } from './payload.ts';
import { createQueue } from './queue.ts';
import type { DeclaredWebhook, WebhookTargets } from './targets.ts';

export interface WebhookDispatcherDeps extends AttemptsDeps {
  targets: WebhookTargets;
  pauses: () => WebhookPauses;
  /** State of the services that plugins call; default: all are available. */
  services?: Pick<NeededServices, 'isAway' | 'confirm'>;
  /** Concurrent async deliveries over all plugins. */
  concurrency: number;
}

/** Maximum async deliveries in memory, by count and body bytes; further ones stay in the store. */
const HELD = 1000;
const HELD_BYTES = 32 * 1024 * 1024;
const PAGE = 200;
const LOOK_AGAIN_MS = seconds(30);
/**
 * Handler concurrency while more deliveries arrive than responses are sent: senders time out, the inbox can
 * wait.
 */
const BUSY_CONCURRENCY = 2;
/** Deliveries being received at which accepting gets priority over handlers. */
const BUSY_FROM = 16;
export interface WebhookDispatcher {
  /**
   * Queues an accepted, stored delivery. Returns a promise only if the caller must wait before it answers, to
   * preserve the order of deliveries.
   */
  enqueue(
    delivery: NewDelivery,
    target: DeclaredWebhook,
    payload: JsonPayload,
    marker?: Uint8Array | null,
  ): void | Promise<void>;
  /**
   * Delays the handler of this delivery until `answered`. Call it before the commit, since a refill from the
   * store may find the delivery from then on.
   */
  expectAnswer(webhookId: string): void;
  /** The 202 was written, or never will be. */
  answered(webhookId: string): void;
  /** Async deliveries waiting in memory, and running. */
  readonly load: { waiting: number; running: number };
  /** Adjusts the number of deliveries being received. */
  receiving(change: 1 | -1): void;
  /** Runs stored deliveries that are not in memory: from an earlier process, or held back until now. */
  runBacklog(): void;
  /** Waits for running deliveries; waiting ones stay in the store for the next start. */
  close(): Promise<void>;
}

/** The dispatcher of the primary process; other gateway processes hand over their deliveries. */
export interface LeadingDispatcher extends WebhookDispatcher {
  /** Adds deliveries that another process accepted, in this order. */
  admit(webhookIds: readonly string[]): Promise<void>;
}

/**
 * Runs accepted deliveries, from memory or from the durable inbox. @spec Webhook delivery step 7;
 * docs/webhooks.md "Async"
 */
export function createWebhookDispatcher(deps: WebhookDispatcherDeps): LeadingDispatcher {
  const { inbox, targets, pauses, clock, logger } = deps;
  const deadlines = createDeadlines(clock);
  const { attempt } = createAttempts({ ...deps, deadlines });
  const queue = createQueue<QueuedDelivery>({
    // Bytes and text; the parsed value takes about as much again.
    bytesOf: ({ delivery, payload }) => (delivery.body?.byteLength ?? 0) + (payload?.text.length ?? 0),
    laneOf: ({ delivery, target: { webhook } }) =>
      webhook.concurrency === undefined
        ? undefined
        : { name: endpointName(delivery), limit: webhook.concurrency },
    orderOf: ({ delivery }) =>
      delivery.orderKey === null ? undefined : `${endpointName(delivery)} ${delivery.orderKey}`,
  });
  const running = new Map<string, Promise<void>>();
  const timers = new AttemptTimers(clock, deadlines);
  const gate = new AnswerGate();
  /**
   * Waiting or running deliveries, and those finished while a page that still lists them was read: never
   * dispatched twice.
   */
  const known = new Set<string>();
  /** The store has deliveries that are not in memory. */
  let backlog = false;
  /**
   * Up to this position, open deliveries are in memory or on hold. Without it, each refill would rescan a
   * paused webhook's backlog: two thirds of the CPU time at 60,000 deliveries.
   */
  let lookedUntil = 0;
  let fromTheStart = false;
  let refilling: Promise<void> | undefined;
  let finishedWhileRefilling: string[] = [];
  let closed = false;
  let receiving = 0;
  let stopLooking: (() => void) | undefined;
  /** Webhooks already reported as blocked on their plugin. */
  const toldOf = new Set<string>();

  const isFull = (): boolean => queue.size >= HELD || queue.bytes >= HELD_BYTES;

  /** Whether a new delivery must stay in the store, behind older ones that are only there. */
  function goesBehind({ orderKey }: NewDelivery): boolean {
    if (!backlog && !closed && !isFull() && !(refilling && orderKey !== null)) return false;
    backlog = true;
    return true;
  }

  function pump(): void {
    const concurrency =
      receiving >= BUSY_FROM ? Math.min(BUSY_CONCURRENCY, deps.concurrency) : deps.concurrency;
    while (!closed && running.size < concurrency) {
      const item = gate.next() ?? queue.take();
      if (!item) break;
      // Frees its slot: a response queued behind a slow one on its connection can take long.
      if (gate.keeps(item)) continue;
      const target = runnableTarget(item.delivery);
      if (target) running.set(item.delivery.webhookId, runItem(item, target));
      else for (const { delivery } of queue.drop(item)) known.delete(delivery.webhookId);
    }
    if (backlog && !closed && queue.size < HELD / 2 && !isFull()) refilling ??= refillOnce();
  }

  async function runItem(item: QueuedDelivery, target: DeclaredWebhook): Promise<void> {
    const { webhookId } = item.delivery;
    let again: number | undefined;
    let isHeld = false;
    try {
      const unsure = deps.services?.confirm(target);
      if (unsure) await unsure;
      // A service that recovers from now on finds this delivery in the store.
      isHeld = deps.services?.isAway(target) ?? false;
      if (isHeld) return;
      const end = await attempt(item, target);
      again = end.nextAttemptAt;
      if (end.isUnread) lookAtAll();
    } finally {
      running.delete(webhookId);
      if (isHeld) putBack(item);
      else settle(item, target, again);
      pump();
    }
  }

  /** It stays in the store, with its successors in the same order, until the next full scan. */
  function putBack(item: QueuedDelivery): void {
    for (const { delivery } of queue.drop(item)) known.delete(delivery.webhookId);
  }

  function settle(item: QueuedDelivery, target: DeclaredWebhook, again: number | undefined): void {
    const { webhookId } = item.delivery;
    queue.done(item, { keepsOrder: again !== undefined });
    if (again !== undefined && timers.mayHave(item.delivery)) {
      // The store keeps its body meanwhile.
      schedule({ ...item, target, delivery: { ...item.delivery, body: null } }, again);
      return;
    }
    if (again !== undefined) lookAgainLater();
    if (refilling) finishedWhileRefilling.push(webhookId);
    else known.delete(webhookId);
  }

  function schedule(item: QueuedDelivery, at: number): void {
    timers.schedule(item.delivery.webhookId, at, () => {
      if (closed) return;
      queue.release(item);
      pump();
    });
  }

  async function refillOnce(): Promise<void> {
    await refill();
    refilling = undefined;
    for (const id of finishedWhileRefilling) known.delete(id);
    finishedWhileRefilling = [];
    pump();
  }

  /** Loads the oldest stored deliveries page by page, until memory is full or none are left. */
  async function refill(): Promise<void> {
    backlog = false;
    if (fromTheStart) lookedUntil = 0;
    fromTheStart = false;
    try {
      while (!closed && !isFull()) {
        const page = await inbox.unfinished(PAGE, lookedUntil);
        for (const record of page) hold(record);
        lookedUntil = page.at(-1)?.position ?? lookedUntil;
        if (page.length < PAGE) break;
      }
      backlog ||= isFull();
    } catch (error) {
      backlog = true;
      logger.error('Accepted deliveries could not be read back; retrying', { error });
      await new Promise<void>((resolve) => setTimeout(resolve, 1000).unref());
    }
  }

  function hold(record: DeliveryRecord): void {
    if (known.has(record.webhookId)) return;
    const target = runnableTarget(record);
    if (!target) return;
    const { attempts, marker, nextAttemptAt } = record;
    const waits = nextAttemptAt !== null && !deadlines.isPast(nextAttemptAt);
    if (waits && !timers.mayHave(record)) {
      lookAgainLater();
      return;
    }
    known.add(record.webhookId);
    if (!waits) {
      queue.push({ delivery: record, target, payload: payloadOf(record.body), attempts, marker });
      return;
    }
    const item = { delivery: { ...record, body: null }, target, payload: undefined, attempts, marker };
    if (queue.reserve(item)) schedule(item, nextAttemptAt);
  }

  function lookAgainLater(): void {
    stopLooking ??= clock.after(LOOK_AGAIN_MS, () => {
      stopLooking = undefined;
      runBacklog();
    });
  }

  /**
   * Its current target. Undefined: it stays in the store until its webhook is resumed, or its plugin or a
   * service is back.
   */
  function runnableTarget(delivery: NewDelivery): DeclaredWebhook | undefined {
    if (pauses().isPaused(delivery)) return undefined;
    const { pluginId, event } = delivery;
    const target = targets.find(pluginId, event);
    const name = `${pluginId} ${event}`;
    if (target) toldOf.delete(name);
    else if (!toldOf.has(name)) {
      toldOf.add(name);
      logger.warn(`Accepted deliveries of ${name} wait: the plugin is not loaded with this webhook`, {
        pluginId,
      });
    }
    return target && deps.services?.isAway(target) ? undefined : target;
  }

  function lookAtAll(): void {
    fromTheStart = true;
    backlog = true;
  }

  function runBacklog(): void {
    lookAtAll();
    pump();
  }

  return {
    enqueue(delivery, target, payload, marker = null) {
      if (pauses().isPaused(delivery)) return;
      // A refill may have found it between its commit and this call.
      if (known.has(delivery.webhookId)) return;
      if (!goesBehind(delivery)) {
        known.add(delivery.webhookId);
        queue.push({ delivery, target, payload, attempts: 0, marker });
      }
      pump();
    },
    expectAnswer: (webhookId) => gate.expect(webhookId),
    answered(webhookId) {
      if (gate.answered(webhookId)) pump();
    },
    get load() {
      return { waiting: queue.size, running: running.size };
    },
    async admit(webhookIds) {
      for (const id of webhookIds) {
        const record = backlog ? undefined : await inbox.find(id);
        if (record?.status === 'accepted' && !goesBehind(record)) hold(record);
      }
      pump();
    },
    receiving(change) {
      receiving += change;
    },
    runBacklog,
    async close() {
      closed = true;
      stopLooking?.();
      timers.stopAll();
      await refilling;
      await Promise.all(running.values());
    },
  };
}
