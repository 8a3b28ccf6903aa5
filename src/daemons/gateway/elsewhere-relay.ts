import type { CommandResult, ExecutionRequest, HostTarget } from '../../contracts/index.ts';
import { hours, seconds } from '../../kit/duration.ts';
import { PlatformError } from '../../kit/errors.ts';
import { cancelled, type ExecutionBackend, type StreamSink } from '../../plugins/index.ts';
import type { Member, PrimaryProcess, SiblingProcess } from '../group/process-group.ts';
import type { ElsewhereBackends } from '../plugin-runtime/backends.ts';

const RUN = 'elsewhere.run';
const CANCEL = 'elsewhere.cancel';
/** Primary to sibling: the handler returned a stream. */
const STREAM = 'elsewhere.stream';
/** Primary to sibling: one piece of it, answered when its reader has taken it. */
const CHUNK = 'elsewhere.chunk';
/** The backend keeps the handler's time, and may have to fetch a plugin first; this much later it is stuck. */
const GRACE_MS = seconds(90);
/** Whoever runs a stream ends it after an hour. */
const LONGEST_STREAM_MS = hours(1);

interface RunQuestion {
  backend: keyof ElsewhereBackends;
  request: ExecutionRequest;
  target: HostTarget | undefined;
  streams: boolean;
}

interface StreamNews {
  executionId: string;
  contentType: string;
}

interface ChunkNews {
  executionId: string;
  /** Base64. */
  data: string;
}

/** The hosts' sockets and the containers are the first process's: the others run what belongs there through it. */
export function relayedBackends({
  primary,
  answer,
}: Pick<SiblingProcess, 'primary' | 'answer'>): ElsewhereBackends {
  const sinks = new Map<string, StreamSink>();
  function sinkOf(executionId: string): StreamSink {
    const sink = sinks.get(executionId);
    if (sink) return sink;
    throw new PlatformError(
      'EXECUTION_ERROR',
      `Nobody reads the stream of execution ${executionId} any more.`,
    );
  }
  answer(STREAM, (body) => {
    const { executionId, contentType } = body as StreamNews;
    sinkOf(executionId).start(contentType);
  });
  answer(CHUNK, (body) => {
    const { executionId, data } = body as ChunkNews;
    return sinkOf(executionId).write(Buffer.from(data, 'base64'));
  });
  const relayed = (backend: keyof ElsewhereBackends): ExecutionBackend => ({
    name: backend,
    async run(request, { signal, stream, target } = {}) {
      const { executionId } = request;
      if (signal?.aborted) throw cancelled(request);
      const question: RunQuestion = { backend, request, target, streams: stream !== undefined };
      const cancel = (): void => primary.ask(CANCEL, executionId, () => {});
      signal?.addEventListener('abort', cancel, { once: true });
      if (stream) sinks.set(executionId, stream);
      try {
        const patienceMs = request.timeoutMs + GRACE_MS + (stream ? LONGEST_STREAM_MS : 0);
        return (await primary.call(RUN, question, { patienceMs })) as CommandResult;
      } finally {
        sinks.delete(executionId);
        signal?.removeEventListener('abort', cancel);
      }
    },
    async close() {},
  });
  return { host: relayed('host'), container: relayed('container') };
}

/** What is streamed here goes to the process that asked, which tells when its reader has room. */
function sinkAt(from: Member, { executionId, timeoutMs }: ExecutionRequest): StreamSink {
  return {
    start: (contentType) => from.ask(STREAM, { executionId, contentType } satisfies StreamNews, () => {}),
    async write(piece) {
      const news: ChunkNews = { executionId, data: piece.toString('base64') };
      await from.call(CHUNK, news, { patienceMs: timeoutMs + GRACE_MS });
    },
  };
}

/** The first process's end of it. */
export function answerRelayed(
  group: Pick<PrimaryProcess, 'answer' | 'onLost'>,
  backends: ElsewhereBackends,
): void {
  const running = new Map<string, { from: Member; abort: AbortController }>();
  group.answer(RUN, async (body, from) => {
    const { backend, request, target, streams } = body as RunQuestion;
    const abort = new AbortController();
    running.set(request.executionId, { from, abort });
    try {
      return await backends[backend].run(request, {
        signal: abort.signal,
        ...(target ? { target } : {}),
        ...(streams ? { stream: sinkAt(from, request) } : {}),
      });
    } finally {
      running.delete(request.executionId);
    }
  });
  group.answer(CANCEL, (executionId) => running.get(executionId as string)?.abort.abort());
  // Whoever asked is gone, and so is the caller it asked for.
  group.onLost((member) => {
    for (const { from, abort } of running.values()) if (from === member) abort.abort();
  });
}
