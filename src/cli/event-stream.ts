import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorBody, HEADERS } from '../contracts/index.ts';
import { messageOf } from '../kit/errors/errors.ts';
import { serverSentEvents } from '../kit/streams/server-sent-events.ts';
import type { CommandContext } from './context.ts';
import { openGatewayStream } from './gateway-client.ts';

export interface StreamEvent {
  id: string | undefined;
  event: string;
  data: string;
}

export interface FollowOptions {
  path: string;
  /** Query parameters. Undefined values are omitted. */
  query?: Record<string, unknown>;
  /** Id of the last event that was already received. If undefined, the endpoint decides where the stream starts. */
  after?: string | undefined;
  signal?: AbortSignal;
  /** Handles one event. Events arrive in order. The result `stop` ends the stream. */
  take(event: StreamEvent): TakeResult | Promise<TakeResult>;
  /** Callback that is called once when the connection is lost, not for each failed attempt to reconnect. */
  onLost?(reason: string): void;
  onReconnect?(): void;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most handlers return nothing
type TakeResult = void | 'stop';

/** Maximum time without data. The server sends a heartbeat every 10 s, so a longer silence means a dead connection. */
const MAX_SILENCE_MS = 25_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;

/**
 * Delivers events until `signal` aborts or `take` returns `stop`. Throws if the first connection fails, and reconnects
 * after later failures. Resolves with the id of the last handled event.
 */
export async function followEvents(
  context: CommandContext,
  options: FollowOptions,
): Promise<string | undefined> {
  const { signal = new AbortController().signal, onLost, onReconnect } = options;
  let { after } = options;
  let connected = false;
  let isLost = false;
  for (let retryMs = FIRST_RETRY_MS; !signal.aborted; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
    try {
      for await (const event of connect(context, options, signal, after)) {
        connected = true;
        if (event.event === 'error') throw new Error((JSON.parse(event.data) as ErrorBody).error.message);
        retryMs = FIRST_RETRY_MS;
        if (isLost) onReconnect?.();
        isLost = false;
        const result = await options.take(event);
        after = event.id ?? after;
        if (result === 'stop') return after;
      }
      if (signal.aborted) break;
      throw new Error('the gateway closed the stream');
    } catch (error) {
      if (signal.aborted) break;
      if (!connected) throw error;
      if (!isLost) onLost?.(messageOf(error));
      isLost = true;
    }
    await sleep(retryMs, undefined, { signal }).catch(() => {});
  }
  return after;
}

async function* connect(
  context: CommandContext,
  { path, query = {} }: FollowOptions,
  signal: AbortSignal,
  after: string | undefined,
): AsyncGenerator<StreamEvent> {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
  try {
    const { namespace } = context.globals;
    const response = await openGatewayStream(context, `${path}?${search}`, {
      signal: AbortSignal.any([signal, silence.signal]),
      headers: {
        accept: 'text/event-stream',
        ...(after === undefined ? {} : { 'last-event-id': after }),
        ...(namespace ? { [HEADERS.namespace]: namespace } : {}),
      },
    });
    for await (const { id, event = 'message', data = '' } of serverSentEvents(response.body!)) {
      clearTimeout(timer);
      yield { id, event, data };
      timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
    }
  } catch (error) {
    throw silence.signal.aborted ? new Error(`no event for ${MAX_SILENCE_MS / 1000} s`) : error;
  } finally {
    clearTimeout(timer);
  }
}
