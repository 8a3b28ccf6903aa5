import { setTimeout as sleep } from 'node:timers/promises';
import { PlatformError } from '../kit/errors.ts';
import { serverSentEvents } from '../kit/server-sent-events.ts';
import type { CommandContext } from './context.ts';
import { openGatewayStream } from './gateway-client.ts';

const RETRY_MS = 1000;
/** What one answer brings of what was before. */
const MOST = 1000;

export interface KeptStream {
  path: string;
  /** Those that are undefined are left out. */
  query: Record<string, unknown>;
  /** How many earlier records. */
  count: number;
  /** A record, as JSON. */
  take(line: string): void;
  signal: AbortSignal;
}

/**
 * Hands on the latest `count` records and then each new one, until `signal` fires. Goes on where it was when the
 * connection ends, such as at a restart; throws only when the first connection fails.
 */
export async function followKept(
  context: CommandContext,
  { path, query, count, take, signal }: KeptStream,
): Promise<void> {
  const asked = new URLSearchParams({ follow: '1', limit: String(Math.min(count, MOST)) });
  for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value));
  let lastId: string | undefined;
  let connected = false;
  while (!signal.aborted) {
    try {
      const response = await openGatewayStream(context, `${path}?${asked}`, {
        signal,
        headers: {
          accept: 'text/event-stream',
          ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
        },
      });
      connected = true;
      if (!response.body)
        throw new PlatformError('UPSTREAM_UNAVAILABLE', 'The gateway answered without a stream.');
      for await (const event of serverSentEvents(response.body)) {
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
