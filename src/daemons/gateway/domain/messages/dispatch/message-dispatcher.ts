import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import {
  type DueDelivery,
  type EndedAttempt,
  isUnsent,
  type MessageContent,
  type MessageStore,
  type UnsentEnd,
} from '../../../../../store/ports/index.ts';
import type { EndpointRegistry, KnownEndpoint } from '../endpoint-registry.ts';
import type { MessageSender } from '../message-sender.ts';
import { AttemptEnds } from './attempt-ends.ts';
import { type AttemptSlot, AttemptSlots } from './attempt-slots.ts';
import { Attempts } from './attempts.ts';
import type { EndpointEnds } from './endpoint-ends.ts';
import { EndpointLoads } from './endpoint-loads.ts';
import { EndpointQueue } from './endpoint-queue.ts';
import { MessageContents } from './message-contents.ts';

export interface MessageDispatcherDeps {
  store: MessageStore;
  registry: EndpointRegistry;
  sender: MessageSender;
  endpointEnds: EndpointEnds;
  clock: Clock;
  random: Pick<Random, 'fraction'>;
  logger: Logger;
  /** Whether other processes use the store. */
  isShared: boolean;
  /** Whether this process is storing the message. */
  isPublishing(messageId: string): boolean;
  /** Returns false while another process may dispatch the same messages. */
  mayStart(): boolean;
  observe(outcome: 'succeeded' | 'failed', durationMs: number): void;
}

const LOAD_RETRY_MS = seconds(1);
/** Ends that are not stored, above which no attempt starts: the store is away. */
const MAX_UNSTORED = 10_000;
/** Time for attempts in flight when the service stops. */
const DRAIN_MS = seconds(3);

/**
 * Sends messages to endpoints. Each endpoint has its own queue, and all share the slots in turn. @spec
 * docs/decisions/0250
 */
export class MessageDispatcher {
  readonly #deps: MessageDispatcherDeps;
  readonly #queues = new Map<string, EndpointQueue>();
  /** Endpoints that may start an attempt. A set keeps the order, so that they take turns. */
  readonly #ready = { proven: new Set<EndpointQueue>(), unproven: new Set<EndpointQueue>() };
  readonly #timers = new Map<EndpointQueue, () => void>();
  readonly #contents: MessageContents;
  readonly #ends: AttemptEnds;
  readonly #loads: EndpointLoads;
  readonly #slots: AttemptSlots;
  readonly #attempts: Attempts;
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #isPumping = false;
  #isActive = false;
  /** Whether the queues know all that the store had before this process became active. */
  #isScanned = false;
  #isClosed = false;

  constructor(deps: MessageDispatcherDeps) {
    this.#deps = deps;
    const { store, sender, registry, endpointEnds, clock, random, logger, isPublishing, observe } = deps;
    this.#contents = new MessageContents(store);
    this.#ends = new AttemptEnds({
      store,
      clock,
      logger,
      onStored: (end) => this.#stored(end),
      onWritten: () => this.#pump(),
    });
    this.#loads = new EndpointLoads({ store, ends: this.#ends, clock, isPublishing });
    this.#slots = new AttemptSlots(clock, () => this.#pump());
    this.#attempts = new Attempts({
      sender,
      endpointEnds,
      clock,
      random,
      observe,
      contents: this.#contents,
      ends: this.#ends,
      signal: this.#stopping.signal,
    });
    registry.onChange((id, known) => this.#changed(id, known));
  }

  get inFlight(): number {
    return this.#slots.inFlight;
  }

  /** Takes a stored message. A process that does not dispatch leaves it in the store. */
  accept(content: MessageContent, endpointIds: readonly string[]): void {
    if (!this.#isActive) return;
    this.#contents.put(content);
    const fresh = { messageId: content.id, attempts: 0, tries: 0, isReplay: false, nextAttemptAt: null };
    for (const endpointId of endpointIds) this.#take({ ...fresh, endpointId });
    this.#pump();
  }

  /** Takes deliveries that are replayed. They are in the store, so queues in memory may have to load them. */
  replayed(deliveries: readonly DueDelivery[]): void {
    if (!this.#isActive) return;
    for (const endpointId of new Set(deliveries.map((delivery) => delivery.endpointId))) {
      const queue = this.#queueOf(endpointId);
      queue?.noteStored({ waiting: true, retryAt: null });
      if (queue) this.#schedule(queue);
    }
    this.#pump();
  }

  /** Reads from the store which endpoints have deliveries. Also starts the dispatcher. */
  async scan(): Promise<void> {
    this.#isActive = true;
    const { store, endpointEnds } = this.#deps;
    for (const { endpointId, oldestWaiting, nextRetryAt } of await store.work()) {
      if (this.#isClosed) return;
      const queue = this.#queueOf(endpointId);
      if (!queue) endpointEnds.end(endpointId);
      else {
        queue.noteStored({ waiting: oldestWaiting !== null, retryAt: nextRetryAt });
        this.#schedule(queue);
      }
    }
    this.#isScanned = true;
    this.#pump();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const cancel of this.#timers.values()) cancel();
    this.#slots.close();
    const timer = setTimeout(() => this.#stopping.abort(), DRAIN_MS);
    await Promise.all(this.#running);
    clearTimeout(timer);
    await this.#ends.close();
  }

  #take(delivery: DueDelivery): void {
    const queue = this.#queueOf(delivery.endpointId);
    // The endpoint was disabled or deleted since the message was stored.
    if (!queue) {
      this.#deps.endpointEnds.end(delivery.endpointId);
      return;
    }
    // The store may have an earlier message: from before the start, or accepted by another process.
    const mayPush = this.#isScanned && !(this.#deps.isShared && queue.isOrdered);
    if (mayPush) queue.push(delivery);
    else queue.noteStored({ waiting: true, retryAt: null });
    this.#schedule(queue);
  }

  /** Returns the queue of an endpoint that is enabled. */
  #queueOf(id: string): EndpointQueue | undefined {
    const known = this.#deps.registry.find(id);
    if (!known || known.record.disabledReason !== null) return undefined;
    let queue = this.#queues.get(id);
    if (!queue) {
      queue = new EndpointQueue(id);
      queue.configure(known.record, this.#deps.clock.now());
      queue.failingSince = known.record.failingSince;
      this.#queues.set(id, queue);
    }
    return queue;
  }

  #changed(id: string, known: KnownEndpoint | undefined): void {
    const queue = this.#queues.get(id);
    if (known && known.record.disabledReason === null) {
      if (queue?.isPaused) queue.failingSince = known.record.failingSince;
      queue?.configure(known.record, this.#deps.clock.now());
      if (queue) this.#schedule(queue);
      this.#pump();
      return;
    }
    queue?.pause();
    if (queue?.isEmpty) this.#forget(queue);
    if (this.#isActive) this.#deps.endpointEnds.end(id);
  }

  #schedule(queue: EndpointQueue): void {
    this.#ready[queue.isProven ? 'proven' : 'unproven'].add(queue);
  }

  /** Starts attempts until no endpoint can start one, or no slot is free. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    for (const isProven of [true, false]) {
      const ready = this.#ready[isProven ? 'proven' : 'unproven'];
      for (const queue of ready) {
        if (!this.#mayStart() || !this.#slots.isFree(isProven)) break;
        ready.delete(queue);
        // A queue with further deliveries goes to the end of the turn.
        if (this.#step(queue, isProven)) ready.add(queue);
      }
    }
    this.#isPumping = false;
  }

  #mayStart(): boolean {
    return this.#isScanned && !this.#isClosed && this.#ends.pending < MAX_UNSTORED && this.#deps.mayStart();
  }

  /** Returns whether an attempt was started. */
  #step(queue: EndpointQueue, isProven: boolean): boolean {
    const { clock, registry } = this.#deps;
    const step = queue.next(clock.now());
    if (step.kind === 'load') this.#track(this.#load(queue));
    if (step.kind === 'wait') this.#wakeIn(queue, step.ms);
    if (step.kind !== 'start') return this.#forgetIdle(queue);
    const known = registry.find(queue.id);
    if (!known) return false;
    queue.start(clock.now());
    const { messageId } = step.delivery;
    const slot = this.#slots.take(isProven, messageId, this.#contents.held(messageId)?.body.byteLength);
    this.#track(this.#attempt(queue, known, step.delivery, slot));
    return true;
  }

  #forgetIdle(queue: EndpointQueue): false {
    const isUnused = queue.isPaused || (queue.failingSince === null && !queue.isProven);
    if (queue.isEmpty && isUnused) this.#forget(queue);
    return false;
  }

  /** Drops a queue with its timer. An endpoint that is enabled again gets another queue, which must stay. */
  #forget(queue: EndpointQueue): void {
    this.#timers.get(queue)?.();
    this.#timers.delete(queue);
    if (this.#queues.get(queue.id) === queue) this.#queues.delete(queue.id);
  }

  #wakeIn(queue: EndpointQueue, ms: number): void {
    this.#timers.get(queue)?.();
    const cancel = this.#deps.clock.after(ms, () => {
      this.#timers.delete(queue);
      this.#schedule(queue);
      this.#pump();
    });
    this.#timers.set(queue, cancel);
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  async #load(queue: EndpointQueue): Promise<void> {
    try {
      await this.#loads.load(queue);
      this.#schedule(queue);
    } catch (error) {
      this.#deps.logger.warn('Deliveries of an endpoint could not be read; retrying', { error });
      if (!this.#isClosed) this.#wakeIn(queue, LOAD_RETRY_MS);
    }
    this.#pump();
  }

  async #attempt(
    queue: EndpointQueue,
    known: KnownEndpoint,
    delivery: DueDelivery,
    slot: AttemptSlot,
  ): Promise<void> {
    try {
      await this.#attempts.make(queue, known, delivery, slot);
    } catch (error) {
      this.#deps.logger.warn('An attempt could not be made; retrying', { error });
      queue.putBack(delivery);
      if (!this.#isClosed) this.#wakeIn(queue, LOAD_RETRY_MS);
      return;
    } finally {
      slot.free();
    }
    this.#schedule(queue);
    this.#pump();
  }

  #stored(end: EndedAttempt | UnsentEnd): void {
    const nextAttemptAt = isUnsent(end) ? null : end.nextAttemptAt;
    const queue = this.#queues.get(end.endpointId);
    queue?.stored(end.messageId, nextAttemptAt);
    if (!queue || (nextAttemptAt === null && !queue.isOrdered && !queue.isPaused)) return;
    this.#schedule(queue);
  }
}
