import { setTimeout as sleep } from 'node:timers/promises';
import { HEADERS } from '../contracts/index.ts';
import { messageOf } from '../kit/errors.ts';
import { serverSentEvents } from '../kit/server-sent-events.ts';
import type { CommandContext } from './context.ts';
import { openGatewayStream } from './gateway-client.ts';

export interface StreamEvent {
  id: string | undefined;
  event: string;
  data: string;
}

export interface FollowOptions {
  path: string;
  query: Record<string, string | undefined>;
  /** Where to go on; undefined: from now on. */
  cursor: string | undefined;
  signal: AbortSignal;
  take(event: StreamEvent): void | Promise<void>;
  /** The stream broke off; called once until `back` is. */
  lost(why: string): void;
  /** It goes on where it was. */
  back(): void;
}

/** The server says something at least every 10 s; a laptop that slept finds its connection dead without a word. */
const SILENCE_MS = 25_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/**
 * Hands on each event until `signal` fires, over as many connections as it takes, each going on after the last event that
 * `take` was through with. Resolves with the last cursor; throws only when the first connection fails.
 */
export async function followEvents(
  context: CommandContext,
  options: FollowOptions,
): Promise<string | undefined> {
  let { cursor } = options;
  let connected = false;
  let isLost = false;
  for (
    let retryMs = FIRST_RETRY_MS;
    !options.signal.aborted;
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)
  ) {
    try {
      for await (const event of connect(context, options, cursor)) {
        connected = true;
        retryMs = FIRST_RETRY_MS;
        if (isLost) options.back();
        isLost = false;
        await options.take(event);
        cursor = event.id ?? cursor;
      }
      if (options.signal.aborted) break;
      throw new Error('the gateway ended the stream');
    } catch (error) {
      if (options.signal.aborted) break;
      if (!connected) throw error;
      if (!isLost) options.lost(messageOf(error));
      isLost = true;
    }
    await sleep(retryMs, undefined, { signal: options.signal }).catch(() => {});
  }
  return cursor;
}

async function* connect(
  context: CommandContext,
  { path, query, signal }: FollowOptions,
  cursor: string | undefined,
): AsyncGenerator<StreamEvent> {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, cursor }))
    if (value !== undefined) asked.set(name, value);
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const { namespace } = context.globals;
    const response = await openGatewayStream(context, `${path}?${asked}`, {
      signal: AbortSignal.any([signal, silence.signal]),
      headers: { accept: 'text/event-stream', ...(namespace ? { [HEADERS.namespace]: namespace } : {}) },
    });
    for await (const { id, event = 'message', data = '' } of serverSentEvents(response.body!)) {
      clearTimeout(timer);
      yield { id, event, data };
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    }
  } catch (error) {
    throw silence.signal.aborted ? new Error(`nothing was heard for ${SILENCE_MS / 1000} s`) : error;
  } finally {
    clearTimeout(timer);
  }
}
