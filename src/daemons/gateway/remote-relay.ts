import type { CommandResult, ExecutionRequest, HostTarget } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { hours, seconds } from '../../kit/time/duration.ts';
import { cancelled, type ExecutionBackend, type StreamSink } from '../../plugins/index.ts';
import type { Member, PrimaryProcess, SiblingProcess } from '../group/process-group.ts';
import type { RemoteBackends } from '../plugin-runtime/backends.ts';

const RUN = 'remote.run';
const CANCEL = 'remote.cancel';
/** Message from primary to sibling: the handler returned a stream. */
const STREAM = 'remote.stream';
/**
 * Message from primary to sibling with a chunk of a stream. The sibling replies after the reader has taken the chunk.
 */
const CHUNK = 'remote.chunk';
/**
 * Added to the handler's timeout, which the backend enforces. The backend may have to fetch the plugin before the
 * handler starts.
 */
const GRACE_MS = seconds(90);
/** Maximum duration of a stream, enforced by the backends. */
const MAX_STREAM_MS = hours(1);

interface RunQuestion {
  backend: keyof RemoteBackends;
  request: ExecutionRequest;
  target: HostTarget | undefined;
  streams: boolean;
  isOwnerCall: boolean;
}

interface StreamNews {
  executionId: string;
  contentType: string;
}

interface ChunkNews {
  executionId: string;
  /** The chunk, encoded as base64. */
  data: string;
}

/**
 * Returns the backends of a sibling process. The primary runs the executions, because only the primary has the
 * containers and the sockets of hosts.
 */
export function relayedBackends({
  primary,
  answer,
}: Pick<SiblingProcess, 'primary' | 'answer'>): RemoteBackends {
  const sinks = new Map<string, StreamSink>();
  function sinkOf(executionId: string): StreamSink {
    const sink = sinks.get(executionId);
    if (sink) return sink;
    throw new PlatformError(
      'EXECUTION_ERROR',
      `The stream of execution ${executionId} has no reader any more.`,
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
  const relayed = (backend: keyof RemoteBackends): ExecutionBackend => ({
    name: backend,
    async run(request, { signal, stream, target, isOwnerCall = false } = {}) {
      const { executionId } = request;
      if (signal?.aborted) throw cancelled(request);
      const question: RunQuestion = {
        ...{ backend, request, target, isOwnerCall },
        streams: stream !== undefined,
      };
      const cancel = (): void => primary.ask(CANCEL, executionId, () => {});
      signal?.addEventListener('abort', cancel, { once: true });
      if (stream) sinks.set(executionId, stream);
      try {
        const timeoutMs = request.timeoutMs + GRACE_MS + (stream ? MAX_STREAM_MS : 0);
        return (await primary.call(RUN, question, { timeoutMs })) as CommandResult;
      } finally {
        sinks.delete(executionId);
        signal?.removeEventListener('abort', cancel);
      }
    },
    async close() {},
  });
  return { host: relayed('host'), container: relayed('container') };
}

/**
 * Returns a sink that sends a stream to the requesting process. The process confirms each chunk when the reader has
 * room for more.
 */
function sinkAt(from: Member, { executionId, timeoutMs }: ExecutionRequest): StreamSink {
  return {
    start: (contentType) => from.ask(STREAM, { executionId, contentType } satisfies StreamNews, () => {}),
    async write(piece) {
      const news: ChunkNews = { executionId, data: piece.toString('base64') };
      await from.call(CHUNK, news, { timeoutMs: timeoutMs + GRACE_MS });
    },
  };
}

/** Runs executions that sibling processes request from the primary. */
export function answerRelayed(
  group: Pick<PrimaryProcess, 'answer' | 'onLost'>,
  backends: RemoteBackends,
): void {
  const running = new Map<string, { from: Member; abort: AbortController }>();
  group.answer(RUN, async (body, from) => {
    const { backend, request, target, streams, isOwnerCall } = body as RunQuestion;
    const abort = new AbortController();
    running.set(request.executionId, { from, abort });
    try {
      return await backends[backend].run(request, {
        signal: abort.signal,
        isOwnerCall,
        ...(target ? { target } : {}),
        ...(streams ? { stream: sinkAt(from, request) } : {}),
      });
    } finally {
      running.delete(request.executionId);
    }
  });
  group.answer(CANCEL, (executionId) => running.get(executionId as string)?.abort.abort());
  // The requesting process has ended, so its executions no longer have a caller.
  group.onLost((member) => {
    for (const { from, abort } of running.values()) if (from === member) abort.abort();
  });
}
