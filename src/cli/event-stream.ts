import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorBody, HEADERS } from '../contracts/index.ts';
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
  /** Those that are undefined are left out. */
  query?: Record<string, unknown>;
  /** Id of the event to go on after; undefined: as the path has it by itself. */
  after?: string | undefined;
  signal?: AbortSignal;
  /** Takes one after the other; `stop` when it was the last. */
  take(event: StreamEvent): Taken | Promise<Taken>;
  /** The stream broke off; called once until `back` is. */
  lost?(why: string): void;
  /** It goes on where it was. */
  back?(): void;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most takers have nothing to say.
type Taken = void | 'stop';

/** The server says something at least every 10 s; a laptop that slept finds its connection dead without a word. */
const SILENCE_MS = 25_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/**
 * Hands on each event until `signal` fires or one was the last, over as many connections as it takes, each going on after the
 * last event that `take` was through with. Resolves with the id of that one; throws only when the first connection fails.
 */
export async function followEvents(
  context: CommandContext,
  options: FollowOptions,
): Promise<string | undefined> {
  const { signal = new AbortController().signal, lost, back } = options;
  let { after } = options;
  let connected = false;
  let isLost = false;
  for (let retryMs = FIRST_RETRY_MS; !signal.aborted; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
    try {
      for await (const event of connect(context, options, signal, after)) {
        connected = true;
        if (event.event === 'error') throw new Error((JSON.parse(event.data) as ErrorBody).error.message);
        retryMs = FIRST_RETRY_MS;
        if (isLost) back?.();
        isLost = false;
        const taken = await options.take(event);
        after = event.id ?? after;
        if (taken === 'stop') return after;
      }
      if (signal.aborted) break;
      throw new Error('the gateway ended the stream');
    } catch (error) {
      if (signal.aborted) break;
      if (!connected) throw error;
      if (!isLost) lost?.(messageOf(error));
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
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value));
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const { namespace } = context.globals;
    const response = await openGatewayStream(context, `${path}?${asked}`, {
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
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    }
  } catch (error) {
    throw silence.signal.aborted ? new Error(`nothing was heard for ${SILENCE_MS / 1000} s`) : error;
  } finally {
    clearTimeout(timer);
  }
}
