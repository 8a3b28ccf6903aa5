import { SOURCES_PLUGIN_ID } from '../../../../../contracts/index.ts';
import { createDeadlines, type Deadlines } from '../../../../../kit/time/deadlines.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { DeliveryRecord, NewDelivery } from '../../../../../store/ports/index.ts';
import type { WebhookPauses } from '../admin/pauses.ts';
import { endpointName } from '../receive/endpoint-name.ts';
import { type JsonPayload, payloadOf } from '../receive/payload.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import { AnswerGate } from './answer-gate.ts';
import { AttemptTimers } from './attempt-timers.ts';
import { type AttemptEnd, Attempts, type AttemptsDeps, type QueuedDelivery } from './attempts.ts';
import { DeliveryBacklog } from './backlog.ts';
import type { NeededServices } from './needed-services.ts';
import type { OtherGateways } from './other-gateways.ts';
import { Queue } from './queue.ts';
import { RunnableTargets } from './runnable-targets.ts';
import { limitOf, WaitingBound } from './waiting-bound.ts';
import type { WebhookDispatcher } from './webhook-dispatcher.ts';

export interface WebhookDispatcherDeps extends AttemptsDeps {
  targets: WebhookTargets;
  pauses: Pick<WebhookPauses, 'isPaused'>;
  /** State of the services that plugins call. If undefined, all services count as available. */
  services?: Pick<NeededServices, 'isUnavailable' | 'confirm'>;
  /** Maximum concurrent async deliveries of all plugins. */
  concurrency: number;
  /** Returns false while no handler is allowed to start, because another node might run the same deliveries. */
  mayStart?: () => boolean;
  /** Other gateways of the same store, which run a share of the attempts. */
  others?: Pick<OtherGateways, 'attempt' | 'capacity'>;
}

/** Maximum number of async deliveries in memory. Further deliveries stay in the store. */
const MAX_HELD = 1000;
const MAX_HELD_BYTES = 32 * 1024 * 1024;
const RESCAN_MS = seconds(30);
/** Maximum concurrent hand-overs of sources that take no slot of the handlers. */
const MAX_HAND_OVERS = 256;
/**
 * Maximum concurrent handlers while many deliveries are being received. Responses have priority, because senders time
 * out, but stored deliveries can wait.
 */
const BUSY_CONCURRENCY = 2;
/** Number of concurrently received deliveries at which `BUSY_CONCURRENCY` applies. */
const BUSY_FROM = 16;

/** Runs accepted deliveries, from memory or from the store. @spec Webhook delivery step 7; docs/webhooks.md "Async" */
export class InboxDispatcher implements WebhookDispatcher {
  readonly #deps: WebhookDispatcherDeps;
  readonly #deadlines: Deadlines;
  readonly #attempts: Attempts;
  readonly #timers: AttemptTimers;
  readonly #runnable: RunnableTargets;
  readonly #gate = new AnswerGate();
  readonly #queue = new Queue<QueuedDelivery>({
    // Size of the body and of its text. The parsed value is not counted, although the value needs about the same amount
    // of memory.
    bytesOf: ({ delivery, payload }) => (delivery.body?.byteLength ?? 0) + (payload?.text.length ?? 0),
    limitOf,
    orderOf: ({ delivery }) =>
      delivery.orderKey === null ? undefined : `${endpointName(delivery)} ${delivery.orderKey}`,
  });
  readonly #bound = new WaitingBound((name) => this.#queue.waitingFor(name));
  readonly #running = new Map<string, Promise<void>>();
  /**
   * Ids of deliveries that must not be queued again. These deliveries are waiting, running, or finished during the
   * current refill.
   */
  readonly #known = new Set<string>();
  readonly #backlog: DeliveryBacklog;
  #receiving = 0;
  /** Number of attempts that run in this process and not on other gateways. */
  #ownRunning = 0;
  /** Number of running attempts that hand a delivery of a source over. */
  #handingOver = 0;
  #stopRescan: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: WebhookDispatcherDeps) {
    this.#deps = deps;
    this.#deadlines = createDeadlines(deps.clock);
    this.#attempts = new Attempts({ ...deps, deadlines: this.#deadlines });
    this.#timers = new AttemptTimers(deps.clock, this.#deadlines);
    this.#runnable = new RunnableTargets(deps);
    this.#backlog = new DeliveryBacklog({
      inbox: deps.inbox,
      logger: deps.logger,
      isFull: () => this.#isFull,
      hold: (record) => this.#hold(record),
      forget: (webhookIds) => {
        for (const id of webhookIds) this.#known.delete(id);
      },
    });
  }

  enqueue(
    delivery: NewDelivery,
    target: DeclaredWebhook,
    payload: JsonPayload,
    marker: Uint8Array | null = null,
  ): void {
    if (this.#deps.pauses.isPaused(delivery)) return;
    // The delivery might have been loaded from the store between its commit and this call.
    if (this.#known.has(delivery.webhookId)) return;
    if (!this.#mustWaitInStore(delivery) && !this.#bound.keepsOut(limitOf({ delivery, target })?.name)) {
      this.#known.add(delivery.webhookId);
      this.#queue.push({ delivery, target, payload, attempts: 0, marker });
    }
    this.#pump();
  }

  expectAnswer(webhookId: string): void {
    this.#gate.expect(webhookId);
  }

  answered(webhookId: string): void {
    if (this.#gate.answered(webhookId)) this.#pump();
  }

  get load(): { waiting: number; running: number } {
    return { waiting: this.#queue.size, running: this.#running.size };
  }

  receiving(change: 1 | -1): void {
    this.#receiving += change;
  }

  /** Loads deliveries that were stored since the last load, such as deliveries that other nodes accepted. */
  pull(): void {
    this.#backlog.add();
    this.#pump();
  }

  runBacklog(): void {
    this.#bound.clear();
    this.#backlog.rescan();
    this.#pump();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopRescan?.();
    this.#timers.stopAll();
    await this.#backlog.close();
    await Promise.all(this.#running.values());
  }

  get #isFull(): boolean {
    return this.#queue.size >= MAX_HELD || this.#queue.bytes >= MAX_HELD_BYTES;
  }

  /**
   * Returns whether a new delivery must stay in the store: memory is full, or older deliveries are not loaded yet.
   */
  #mustWaitInStore({ orderKey }: NewDelivery): boolean {
    const { isPending, isRefilling } = this.#backlog;
    if (!isPending && !this.#isClosed && !this.#isFull && !(isRefilling && orderKey !== null)) return false;
    this.#backlog.add();
    return true;
  }

  #pump(): void {
    const { others, mayStart = () => true } = this.#deps;
    const limit = this.#ownLimit + (others?.capacity ?? 0);
    // Hand-overs mostly wait for other systems. They take no slot of the handlers, so that slow ones delay no webhook.
    const free = (): number => limit + Math.min(this.#handingOver, MAX_HAND_OVERS) - this.#running.size;
    while (!this.#isClosed && mayStart() && free() > 0) {
      const item = this.#gate.next() ?? this.#queue.take();
      if (!item) break;
      // The loop continues with the next delivery while this delivery waits for its response. An earlier slow response
      // on the same connection can delay this response.
      if (this.#gate.keeps(item)) continue;
      const target = this.#runnable.find(item.delivery);
      if (target) this.#running.set(item.delivery.webhookId, this.#run(item, target));
      else this.#putBack(item);
    }
    const hasRoom = this.#queue.size < MAX_HELD / 2 && !this.#isFull;
    if (this.#backlog.isPending && !this.#isClosed && hasRoom) this.#backlog.refill(() => this.#pump());
  }

  get #ownLimit(): number {
    const { concurrency } = this.#deps;
    return this.#receiving >= BUSY_FROM ? Math.min(BUSY_CONCURRENCY, concurrency) : concurrency;
  }

  async #run(item: QueuedDelivery, target: DeclaredWebhook): Promise<void> {
    const { services } = this.#deps;
    let end: AttemptEnd | 'held' = 'held';
    const isHandOver = item.delivery.pluginId === SOURCES_PLUGIN_ID;
    if (isHandOver) this.#handingOver++;
    try {
      const unsure = services?.confirm(target);
      if (unsure) await unsure;
      // If a service is unavailable, the delivery is loaded from the store again after the service recovers.
      if (!services?.isUnavailable(target)) end = await this.#attempt(item, target);
    } finally {
      this.#running.delete(item.delivery.webhookId);
      if (isHandOver) this.#handingOver--;
      if (end === 'held') this.#putBack(item);
      else if (end.isUnread) {
        this.#putBack(item);
        this.#backlog.rescan();
      } else this.#settle(item, target, end.nextAttemptAt);
      this.#pump();
    }
  }

  /**
   * Runs the attempt on another gateway if that gateway has fewer running attempts. Otherwise runs the attempt in this
   * process.
   */
  async #attempt(item: QueuedDelivery, target: DeclaredWebhook): Promise<AttemptEnd> {
    const load = { ownRunning: this.#ownRunning, ownLimit: this.#ownLimit };
    const end = await this.#deps.others?.attempt(item, load);
    if (end) {
      item.attempts++;
      return end;
    }
    this.#ownRunning++;
    try {
      return await this.#attempts.attempt(item, target);
    } finally {
      this.#ownRunning--;
    }
  }

  /**
   * Removes a delivery and later deliveries with the same order key from memory. The next full scan loads the removed
   * deliveries from the store again.
   */
  #putBack(item: QueuedDelivery): void {
    for (const { delivery } of this.#queue.drop(item)) this.#known.delete(delivery.webhookId);
  }

  #settle(item: QueuedDelivery, target: DeclaredWebhook, again: number | undefined): void {
    this.#queue.done(item, { keepsOrder: again !== undefined });
    if (this.#bound.drained(limitOf(item)?.name)) this.#backlog.rescan();
    if (again !== undefined && this.#timers.maySchedule(item.delivery)) {
      // The body is not kept in memory between attempts, because the store contains the body.
      this.#schedule({ ...item, target, delivery: { ...item.delivery, body: null } }, again);
      return;
    }
    if (again !== undefined) this.#rescanLater();
    this.#backlog.finished(item.delivery.webhookId);
  }

  #schedule(item: QueuedDelivery, at: number): void {
    this.#timers.schedule(item.delivery.webhookId, at, () => {
      if (this.#isClosed) return;
      this.#queue.release(item);
      this.#pump();
    });
  }

  #hold(record: DeliveryRecord): void {
    if (this.#known.has(record.webhookId)) return;
    const target = this.#runnable.find(record);
    if (!target) return;
    const { attempts, marker, nextAttemptAt } = record;
    const waits = nextAttemptAt !== null && !this.#deadlines.isPast(nextAttemptAt);
    if (waits && !this.#timers.maySchedule(record)) {
      this.#rescanLater();
      return;
    }
    if (!waits && this.#bound.keepsOut(limitOf({ delivery: record, target })?.name)) return;
    this.#known.add(record.webhookId);
    if (!waits) {
      const parsed = payloadOf(target, record);
      // A body that cannot be parsed at once is read back by its attempt.
      const payload = parsed instanceof Promise ? undefined : parsed;
      this.#queue.push({ delivery: record, target, payload, attempts, marker });
      return;
    }
    const item = { delivery: { ...record, body: null }, target, payload: undefined, attempts, marker };
    if (this.#queue.reserve(item)) this.#schedule(item, nextAttemptAt);
  }

  #rescanLater(): void {
    this.#stopRescan ??= this.#deps.clock.after(RESCAN_MS, () => {
      this.#stopRescan = undefined;
      this.runBacklog();
    });
  }
}
