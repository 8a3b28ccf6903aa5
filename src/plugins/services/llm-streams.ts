import type { LlmReply } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { PlatformCallContext } from '../execution.ts';

type Pieces = AsyncGenerator<string, LlmReply>;

/**
 * Reply to a `nextPieces` call. Contains the next chunk of text, or the complete model reply at the end of the stream.
 */
export interface NextPieces {
  text: string;
  reply?: LlmReply;
}

interface Open {
  id: number;
  executionId: string;
  pieces: Pieces;
  abort: AbortController;
  /** The next chunk, fetched in advance. */
  ahead: Promise<IteratorResult<string, LlmReply>>;
  stopTimer: () => void;
}

const MAX_STREAMS_PER_EXECUTION = 8;
/**
 * Time after which an unread stream is closed. The limit is needed because a handler can end without closing its
 * streams.
 */
const UNREAD_MS = minutes(2);

/** Open streams of model replies. The next chunk of each stream is fetched in advance. */
export class LlmStreams {
  readonly #clock: Clock;
  readonly #open = new Map<number, Open>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a stream and returns its id. Throws SERVICE_UNAVAILABLE if the execution has too many open streams. */
  open(
    { request: { executionId }, signal }: PlatformCallContext,
    start: (signal: AbortSignal) => Pieces,
  ): number {
    const own = [...this.#open.values()].filter((stream) => stream.executionId === executionId);
    if (own.length >= MAX_STREAMS_PER_EXECUTION) {
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `The handler has ${MAX_STREAMS_PER_EXECUTION} streams of ctx.llm open; finish or close some first.`,
      );
    }
    const id = ++this.#lastId;
    const abort = new AbortController();
    const pieces = start(AbortSignal.any([signal, abort.signal]));
    const stream: Open = { id, executionId, pieces, abort, ahead: readAhead(pieces), stopTimer: () => {} };
    signal.addEventListener('abort', () => this.#discard(stream), { once: true });
    this.#open.set(id, stream);
    this.#closeLater(stream);
    return id;
  }

  /**
   * Waits for the next chunk of a stream. Throws NOT_FOUND for an unknown stream. Also throws the error of a failed
   * stream.
   */
  async next(executionId: string, id: unknown): Promise<NextPieces> {
    const stream = this.#find(executionId, id);
    this.#closeLater(stream);
    try {
      const { value, done } = await stream.ahead;
      if (!done) {
        stream.ahead = readAhead(stream.pieces);
        return { text: value };
      }
      this.#discard(stream);
      return { text: '', reply: value };
    } catch (error) {
      this.#discard(stream);
      throw error;
    }
  }

  close(executionId: string, id: unknown): void {
    this.#discard(this.#find(executionId, id));
  }

  #find(executionId: string, id: unknown): Open {
    const stream = typeof id === 'number' ? this.#open.get(id) : undefined;
    // An execution is allowed to use only its own streams, so the execution id is compared.
    if (stream?.executionId === executionId) return stream;
    throw new PlatformError(
      'NOT_FOUND',
      'There is no such stream: it ended, or was not read for two minutes.',
    );
  }

  #closeLater(stream: Open): void {
    stream.stopTimer();
    stream.stopTimer = this.#clock.after(UNREAD_MS, () => this.#discard(stream));
  }

  #discard({ id, pieces, abort, stopTimer }: Open): void {
    stopTimer();
    this.#open.delete(id);
    abort.abort();
    // A suspended generator does not react to an aborted signal, so the generator is closed explicitly.
    pieces[Symbol.asyncDispose]().then(undefined, () => {});
  }
}

function readAhead(pieces: Pieces): Open['ahead'] {
  const ahead = pieces.next();
  // An error of an unread stream would cause an unhandled rejection. For a stream that is read, the method `next`
  // handles the error.
  ahead.catch(() => {});
  return ahead;
}
