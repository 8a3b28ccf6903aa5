import type { LlmReply } from '../../contracts/index.ts';
import type { Clock } from '../../kit/clock.ts';
import { minutes } from '../../kit/duration.ts';
import { PlatformError } from '../../kit/errors.ts';
import type { PlatformCallContext } from '../execution.ts';

type Pieces = AsyncGenerator<string, LlmReply>;

/** What a `nextPieces` answers: text that came since the last one, and the whole at the end. */
export interface NextPieces {
  text: string;
  reply?: LlmReply;
}

export interface LlmStreams {
  /** Begins to read; the returned number names the stream within its execution. Throws SERVICE_UNAVAILABLE for the ninth. */
  open(context: PlatformCallContext, start: (signal: AbortSignal) => Pieces): number;
  /** Waits for something to come. Throws NOT_FOUND, and what the stream failed of. */
  next(executionId: string, id: unknown): Promise<NextPieces>;
  close(executionId: string, id: unknown): void;
}

interface Open {
  executionId: string;
  pieces: Pieces;
  abort: AbortController;
  /** What is being read ahead. */
  ahead: Promise<IteratorResult<string, LlmReply>>;
  forgetLater(): void;
  forget(): void;
}

const MOST_OF_AN_EXECUTION = 8;
/** A handler that ended, or forgot a stream, does not say so. */
const UNASKED_MS = minutes(2);

/** Streams that are under way, each read one piece ahead of whoever asks. */
export function createLlmStreams(clock: Clock): LlmStreams {
  const open = new Map<number, Open>();
  let lastId = 0;

  function find(executionId: string, id: unknown): Open {
    const stream = typeof id === 'number' ? open.get(id) : undefined;
    // Ids count over all plugins: another's stream is none.
    if (stream?.executionId === executionId) return stream;
    throw new PlatformError(
      'NOT_FOUND',
      'There is no such stream; it ended, or nobody read it for two minutes.',
    );
  }
  return {
    open({ request: { executionId }, signal }, start) {
      const own = [...open.values()].filter((stream) => stream.executionId === executionId);
      if (own.length >= MOST_OF_AN_EXECUTION) {
        throw new PlatformError(
          'SERVICE_UNAVAILABLE',
          `The handler has ${MOST_OF_AN_EXECUTION} streams of ctx.llm open; finish or leave some first.`,
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
        forgetLater() {
          stop();
          stop = clock.after(UNASKED_MS, stream.forget);
        },
        forget() {
          stop();
          open.delete(id);
          abort.abort();
          // A generator that stands at a piece nobody took hears no signal.
          pieces.return(undefined as never).catch(() => {});
        },
      };
      signal.addEventListener('abort', stream.forget, { once: true });
      open.set(id, stream);
      stream.forgetLater();
      return id;
    },
    async next(executionId, id) {
      const stream = find(executionId, id);
      stream.forgetLater();
      try {
        const { value, done } = await stream.ahead;
        if (!done) {
          stream.ahead = readAhead(stream.pieces);
          return { text: value };
        }
        stream.forget();
        return { text: '', reply: value };
      } catch (error) {
        stream.forget();
        throw error;
      }
    },
    close(executionId, id) {
      find(executionId, id).forget();
    },
  };
}

function readAhead(pieces: Pieces): Open['ahead'] {
  const ahead = pieces.next();
  // It is thrown where it is asked for; nobody may ask any more.
  ahead.catch(() => {});
  return ahead;
}
