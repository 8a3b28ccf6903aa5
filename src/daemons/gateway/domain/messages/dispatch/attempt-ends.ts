import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type {
  EndedAttempt,
  FailureChange,
  MessageStore,
  UnsentEnd,
} from '../../../../../store/ports/index.ts';

/** Time after which an end is written. A kill within it repeats the attempt, with the same `webhook-id`. */
const FLUSH_MS = 25;
const MAX_BATCH = 512;
const RETRY_MS = seconds(1);

export interface AttemptEndsDeps {
  store: Pick<MessageStore, 'endAttempts'>;
  clock: Clock;
  logger: Logger;
  /** Called for each end that is stored. */
  onStored(end: EndedAttempt | UnsentEnd): void;
  /** Called after each batch. */
  onWritten(): void;
}

/** Writes the ends of attempts in batches. Failed writes are repeated. */
export class AttemptEnds {
  readonly #deps: AttemptEndsDeps;
  #ends: Array<EndedAttempt | UnsentEnd> = [];
  #failures = new Map<string, FailureChange>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: AttemptEndsDeps) {
    this.#deps = deps;
  }

  /** Number of ends that are not stored. */
  get pending(): number {
    return this.#ends.length;
  }

  add(end: EndedAttempt | UnsentEnd, failure: FailureChange | null, isUrgent: boolean): void {
    this.#ends.push(end);
    if (failure) this.#failures.set(failure.endpointId, failure);
    if (isUrgent || this.#ends.length >= MAX_BATCH) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  /** Resolves when the ends that were added before are stored, or when a write failed. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
    if (this.#ends.length === 0) return;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  /** Writes what is left, with one attempt. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#ends.length > 0) {
      const before = this.#ends.length;
      await this.flush();
      if (this.#ends.length >= before) break;
    }
    clearTimeout(this.#timer);
  }

  async #write(): Promise<void> {
    const { store, logger, onStored, onWritten } = this.#deps;
    const ends = this.#ends.slice(0, MAX_BATCH);
    const failures = this.#failures;
    this.#failures = new Map();
    try {
      await store.endAttempts(ends, [...failures.values()]);
    } catch (error) {
      for (const [id, change] of failures) if (!this.#failures.has(id)) this.#failures.set(id, change);
      logger.warn('The ends of attempts could not be stored; retrying', {
        error,
        meta: { ends: ends.length },
      });
      if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.flush(), RETRY_MS);
      return;
    }
    this.#ends = this.#ends.slice(ends.length);
    for (const end of ends) onStored(end);
    onWritten();
    if (this.#ends.length > 0 && !this.#isClosed) this.#timer ??= setTimeout(() => void this.flush(), 0);
  }
}
