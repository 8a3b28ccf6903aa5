import type { LlmReply } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { PlatformCallContext } from '../execution.ts';

type Pieces = AsyncGenerator<string, LlmReply>;

/** Reply to `nextPieces`: text received since the last call, and at the end the whole reply. */
export interface NextPieces {
  text: string;
  reply?: LlmReply;
}

export interface LlmStreams {
  /** Starts a stream and returns its id. Throws SERVICE_UNAVAILABLE above the limit per execution. */
  open(context: PlatformCallContext, start: (signal: AbortSignal) => Pieces): number;
  /** Waits for the next chunk. Throws NOT_FOUND, and the stream's error. */
  next(executionId: string, id: unknown): Promise<NextPieces>;
  close(executionId: string, id: unknown): void;
}

interface Open {
  executionId: string;
  pieces: Pieces;
  abort: AbortController;
  /** The chunk being prefetched. */
  ahead: Promise<IteratorResult<string, LlmReply>>;
  closeLater(): void;
  discard(): void;
}

const MAX_STREAMS_PER_EXECUTION = 8;
/** Time after which an unread stream is closed: a handler that ended does not close it. */
const UNREAD_MS = minutes(2);

/** Open streams, each prefetched by one chunk. */
export function createLlmStreams(clock: Clock): LlmStreams {
  const open = new Map<number, Open>();
  let lastId = 0;

  function find(executionId: string, id: unknown): Open {
    const stream = typeof id === 'number' ? open.get(id) : undefined;
    // Ids are global; an execution may only use its own streams.
    if (stream?.executionId === executionId) return stream;
    throw new PlatformError(
      'NOT_FOUND',
      'There is no such stream: it ended, or was not read for two minutes.',
    );
  }
  return {
    open({ request: { executionId }, signal }, start) {
      const own = [...open.values()].filter((stream) => stream.executionId === executionId);
      if (own.length >= MAX_STREAMS_PER_EXECUTION) {
        throw new PlatformError(
          'SERVICE_UNAVAILABLE',
          `The handler has ${MAX_STREAMS_PER_EXECUTION} streams of ctx.llm open; finish or close some first.`,
        );
      }
      const id = ++lastId;
      const abort = new AbortController();
      const pieces = start(AbortSignal.any([signal, abort.signal]));
      let stop = (): void => {};
      const stream: Open = {
        executionId,
        pieces,
        abort,
        ahead: readAhead(pieces),
        closeLater() {
          stop();
          stop = clock.after(UNREAD_MS, stream.discard);
        },
        discard() {
          stop();
          open.delete(id);
          abort.abort();
          // A generator suspended at a chunk that was not taken does not notice the signal.
          pieces.return(undefined as never).catch(() => {});
        },
      };
      signal.addEventListener('abort', stream.discard, { once: true });
      open.set(id, stream);
      stream.closeLater();
      return id;
    },
    async next(executionId, id) {
      const stream = find(executionId, id);
      stream.closeLater();
      try {
        const { value, done } = await stream.ahead;
        if (!done) {
          stream.ahead = readAhead(stream.pieces);
          return { text: value };
        }
        stream.discard();
        return { text: '', reply: value };
      } catch (error) {
        stream.discard();
        throw error;
      }
    },
    close(executionId, id) {
      find(executionId, id).discard();
    },
  };
}

function readAhead(pieces: Pieces): Open['ahead'] {
  const ahead = pieces.next();
  // `next` handles the error; an unread stream must not cause an unhandled rejection.
  ahead.catch(() => {});
  return ahead;
}
