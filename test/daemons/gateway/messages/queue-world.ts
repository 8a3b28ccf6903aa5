import { EndpointQueue } from '../../../../src/daemons/gateway/domain/messages/dispatch/endpoint-queue.ts';
import type { DueDelivery, StoredEndpoint } from '../../../../src/store/ports/index.ts';

interface Row {
  status: 'waiting' | 'retrying' | 'ended';
  nextAttemptAt: number | null;
  tries: number;
  isReplay: boolean;
}
interface End {
  id: string;
  retryAt: number | null;
}
interface Load {
  retries: boolean;
  limit: number;
  /** Ends that must be stored before the read, as `AttemptEnds.flush` does. */
  flushing: Set<End>;
  found?: DueDelivery[];
  nextAt?: number | null;
}

export type Outcome = 'succeeded' | 'retry' | 'dead';

/**
 * One endpoint: a real queue, a store in memory, and the protocol between them in single steps, so that a test can
 * interleave them. Each step returns whether it did something, and throws if it breaks an invariant.
 */
export class QueueWorld {
  readonly queue = new EndpointQueue('ep', 3);
  readonly #isOrdered: boolean;
  readonly #rows = new Map<string, Row>();
  /** Stored messages that the dispatcher does not know yet. */
  #publishing: string[] = [];
  #inFlight: DueDelivery[] = [];
  /** Ends of attempts: not stored, and stored without notice to the queue. */
  #unstored: End[] = [];
  #unnoticed: End[] = [];
  #load: Load | undefined;
  #scan: { waiting: boolean; retryAt: number | null } | undefined;
  #isEnabled = true;
  #count = 0;
  #now = 1000;

  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered;
    this.#configure();
  }

  publish(): boolean {
    if (!this.#isEnabled) return false;
    const id = `msg_${String(++this.#count).padStart(6, '0')}`;
    this.#rows.set(id, { status: 'waiting', nextAttemptAt: null, tries: 0, isReplay: false });
    this.#publishing.push(id);
    return true;
  }

  accept(): boolean {
    const messageId = this.#publishing.shift();
    if (messageId === undefined) return false;
    if (!this.#isEnabled) return true;
    this.queue.push({
      ...{ messageId, endpointId: 'ep', attempts: 0, tries: 0, isReplay: false, nextAttemptAt: null },
    });
    return true;
  }

  step(): boolean {
    const next = this.queue.next(this.#now);
    if (next.kind === 'load') this.#beginLoad();
    if (next.kind === 'start') this.#start(next.delivery);
    if (next.kind === 'wait' && next.ms <= 0) throw new Error('A wait of no time');
    return next.kind === 'load' || next.kind === 'start';
  }

  finish(index: number, outcome: Outcome): boolean {
    const [delivery] = this.#inFlight.splice(index % (this.#inFlight.length || 1), 1);
    if (!delivery) return false;
    this.queue.ended(outcome === 'succeeded');
    const retryAt = outcome === 'retry' ? this.#now + 50 : null;
    this.#unstored.push({ id: delivery.messageId, retryAt });
    return true;
  }

  /** A started delivery ends without a request. */
  skip(index: number): boolean {
    const [delivery] = this.#inFlight.splice(index % (this.#inFlight.length || 1), 1);
    if (!delivery) return false;
    this.queue.skipped();
    this.#unstored.push({ id: delivery.messageId, retryAt: null });
    return true;
  }

  /** The content of a started delivery could not be read. */
  putBack(index: number): boolean {
    const [delivery] = this.#inFlight.splice(index % (this.#inFlight.length || 1), 1);
    if (delivery) this.queue.putBack(delivery);
    return delivery !== undefined;
  }

  store(): boolean {
    if (this.#unstored.length === 0) return false;
    for (const { id, retryAt } of this.#unstored) {
      const row = this.#rows.get(id)!;
      // An end that arrives late does not change a finished delivery.
      if (row.status === 'ended') continue;
      const status = retryAt === null ? ('ended' as const) : ('retrying' as const);
      this.#rows.set(id, { ...row, status, nextAttemptAt: retryAt, tries: row.tries + 1 });
    }
    this.#unnoticed.push(...this.#unstored);
    this.#unstored = [];
    return true;
  }

  notice(): boolean {
    if (this.#unnoticed.length === 0) return false;
    for (const end of this.#unnoticed) {
      this.queue.stored(end.id, end.retryAt);
      this.#load?.flushing.delete(end);
    }
    this.#unnoticed = [];
    return true;
  }

  /** Reads the deliveries of a load. */
  read(): boolean {
    const load = this.#load;
    if (!load || load.found || load.flushing.size > 0) return false;
    this.queue.beginRead();
    load.found = this.#dueRows(load.retries).slice(0, load.limit);
    return true;
  }

  /** Reads the time of the next retry, some time after `read`. */
  readNext(): boolean {
    const load = this.#load;
    if (!load?.found || load.nextAt !== undefined) return false;
    const times = [...this.#rows.values()].map(({ status, nextAttemptAt }) =>
      status === 'retrying' && nextAttemptAt! > this.#loadedAt ? nextAttemptAt! : Number.POSITIVE_INFINITY,
    );
    const next = Math.min(...times);
    load.nextAt = load.found.length >= load.limit ? this.#loadedAt : Number.isFinite(next) ? next : null;
    return true;
  }

  endLoad(): boolean {
    const load = this.#load;
    if (!load?.found || (load.retries && load.nextAt === undefined)) return false;
    this.#load = undefined;
    // The protocol of `EndpointLoads`: messages that this process is about to accept are left to `push`.
    const found = load.found.filter(({ messageId }) => !this.#publishing.includes(messageId));
    if (load.retries) this.queue.loadedRetries(load.found, load.nextAt!);
    else this.queue.loadedWaiting(found, load.found.length >= load.limit);
    return true;
  }

  failLoad(): boolean {
    if (!this.#load) return false;
    this.#load = undefined;
    this.queue.loadFailed();
    return true;
  }

  /** Reads whether the store has work. The queue is told later, as by `MessageDispatcher.scan`. */
  scan(): boolean {
    const retries = [...this.#rows.values()].flatMap(({ status, nextAttemptAt }) =>
      status === 'retrying' ? [nextAttemptAt!] : [],
    );
    this.#scan = {
      waiting: [...this.#rows.values()].some(({ status }) => status === 'waiting'),
      retryAt: retries.length > 0 ? Math.min(...retries) : null,
    };
    return true;
  }

  endScan(): boolean {
    if (!this.#scan) return false;
    if (this.#isEnabled) this.queue.noteStored(this.#scan);
    this.#scan = undefined;
    return true;
  }

  disable(): boolean {
    if (!this.#isEnabled) return false;
    this.#isEnabled = false;
    this.queue.pause();
    return true;
  }

  /** Ends the deliveries of the disabled endpoint in the store, as `EndpointEnds` does some time later. */
  endUnfinished(): boolean {
    if (this.#isEnabled) return false;
    this.#publishing = [];
    for (const [id, row] of this.#rows)
      if (row.status !== 'ended') this.#rows.set(id, { ...row, status: 'ended', nextAttemptAt: null });
    return true;
  }

  enable(): boolean {
    if (this.#isEnabled) return false;
    this.#isEnabled = true;
    this.#configure();
    return true;
  }

  /** Lets an ended delivery wait again. */
  replay(index: number): boolean {
    const ended = [...this.#rows].filter(([, { status }]) => status === 'ended');
    const chosen = ended[index % (ended.length || 1)];
    if (!chosen || !this.#isEnabled) return false;
    this.#rows.set(chosen[0], { status: 'waiting', nextAttemptAt: null, tries: 0, isReplay: true });
    this.queue.noteStored({ waiting: true, retryAt: null });
    return true;
  }

  wait(ms: number): boolean {
    this.#now += ms;
    return true;
  }

  /** Lets all work end. Throws if a delivery is left that the queue does not find without a scan. */
  drain(): void {
    this.enable();
    for (let round = 0; round < 10 * this.#count + 100; round++) {
      while (this.#publishing.length > 0) this.accept();
      let steps = 0;
      while (this.step()) if (++steps > 1000) throw new Error('The queue never rests');
      while (this.#inFlight.length > 0) this.finish(0, 'succeeded');
      this.store();
      this.notice();
      this.read();
      this.readNext();
      this.endLoad();
      this.endScan();
      this.wait(20);
    }
    const lost = [...this.#rows].filter(([, { status }]) => status !== 'ended').map(([id]) => id);
    if (lost.length > 0) throw new Error(`Lost: ${lost.join(', ')}`);
    if (!this.queue.isEmpty) throw new Error('The queue holds deliveries that have ended');
  }

  #loadedAt = 0;

  #beginLoad(): void {
    if (this.#load) throw new Error('Two loads run at once');
    const { retries, limit } = this.queue.beginLoad(this.#now);
    this.#loadedAt = this.#now;
    this.#load = { retries, limit, flushing: new Set([...this.#unstored, ...this.#unnoticed]) };
  }

  #start(delivery: DueDelivery): void {
    const { messageId } = delivery;
    const row = this.#rows.get(messageId)!;
    const fail = (why: string): never => {
      throw new Error(`${messageId} is sent although ${why}`);
    };
    if (!this.#isEnabled) fail('the endpoint is disabled');
    if (this.#inFlight.some((other) => other.messageId === messageId)) fail('it is in flight');
    if (this.#unstored.some(({ id }) => id === messageId)) fail('its end is not stored');
    if (row.status === 'ended') fail('it has ended');
    if (row.status === 'retrying' && row.nextAttemptAt! > this.#now) fail('its retry is not due');
    if (this.#isOrdered && !row.isReplay) this.#requireOrder(messageId, fail);
    this.queue.start(this.#now);
    this.#inFlight.push(delivery);
  }

  #requireOrder(messageId: string, fail: (why: string) => never): void {
    for (const [id, row] of this.#rows)
      if (id < messageId && row.status !== 'ended' && !row.isReplay) fail(`${id} has not ended`);
    if (this.#inFlight.length > 0) fail('another message is in flight');
  }

  #dueRows(retries: boolean): DueDelivery[] {
    return [...this.#rows]
      .filter(([, { status, nextAttemptAt }]) =>
        retries ? status === 'retrying' && nextAttemptAt! <= this.#loadedAt : status === 'waiting',
      )
      .map(([messageId, { tries, nextAttemptAt, isReplay }]) => ({
        ...{ messageId, endpointId: 'ep', attempts: tries, tries, isReplay, nextAttemptAt },
      }))
      .toSorted((a, b) => (a.messageId < b.messageId ? -1 : 1));
  }

  #configure(): void {
    const settings = { ordered: this.#isOrdered, rateLimitPerSecond: null };
    this.queue.configure(settings as StoredEndpoint, this.#now);
  }
}
