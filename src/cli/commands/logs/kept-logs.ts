import { setTimeout as sleep } from 'node:timers/promises';
import { queryLogs } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { CommandContext } from '../../context.ts';
import { openGatewayStream } from '../../gateway-client.ts';
import type { LogQuery } from './filter.ts';

const PAGE = 1000;
const RETRY_MS = 1000;

/** The latest `count` kept records as JSON lines, oldest first. */
export async function latestKept(
  { client }: Pick<CommandContext, 'client'>,
  query: LogQuery,
  count: number,
): Promise<string[]> {
  const lines: string[] = [];
  while (lines.length < count) {
    const limit = Math.min(PAGE, count - lines.length);
    const { items } = await client.call(queryLogs, { query: { ...query, limit, offset: lines.length } });
    lines.push(...items.map((record) => JSON.stringify(record)));
    if (items.length < limit) break;
  }
  return lines.reverse();
}

/**
 * Hands on the latest `count` records and then each new one, until `signal` fires. Goes on where it was when the
 * connection ends, such as at a restart; throws only when the first connection fails.
 */
export async function followKept(
  context: CommandContext,
  query: LogQuery,
  count: number,
  take: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let lastId: string | undefined;
  let connected = false;
  while (!signal.aborted) {
    try {
      const response = await openStream(context, { ...query, limit: Math.min(count, PAGE) }, lastId, signal);
      connected = true;
      for await (const event of serverSentEvents(response)) {
        lastId = event.id ?? lastId;
        if (event.data !== undefined) take(event.data);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!connected) throw error;
    }
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
  }
}

function openStream(
  context: CommandContext,
  query: LogQuery,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const asked = new URLSearchParams({ follow: '1' });
  for (const [name, value] of Object.entries(query)) asked.set(name, String(value));
  return openGatewayStream(context, `${queryLogs.path}?${asked}`, {
    signal,
    headers: { accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
  });
}

interface ServerSentEvent {
  id?: string;
  data?: string;
}

/** The part of the format that we send: one `id` and one `data` line an event, and comments. */
async function* serverSentEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  if (!response.body)
    throw new PlatformError('UPSTREAM_UNAVAILABLE', 'The gateway answered without a stream.');
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const event: ServerSentEvent = {};
      for (const line of block.split('\n')) {
        if (line.startsWith('id: ')) event.id = line.slice(4);
        else if (line.startsWith('data: ')) event.data = line.slice(6);
      }
      yield event;
    }
  }
}
