import type { CommandContext } from './context.ts';
import { followEvents } from './event-stream.ts';

/** Maximum number of stored records per request. */
const MAX_EARLIER = 1000;

export interface StoredStream {
  path: string;
  query: Record<string, unknown>;
  /** Number of stored records to print first. */
  count: number;
  /** Receives each record as JSON. */
  take(line: string): void;
}

/**
 * Delivers the latest `count` stored records, then each new record, until the process ends. Throws if the first
 * connection fails.
 */
export async function followStored(
  context: CommandContext,
  { path, query, count, take }: StoredStream,
): Promise<void> {
  const { ui } = context;
  await followEvents(context, {
    path,
    query: { follow: '1', limit: Math.min(count, MAX_EARLIER), ...query },
    // The first event and the heartbeats carry no record.
    take({ data }) {
      if (data !== '') take(data);
    },
    onLost: (why) =>
      ui.noteOf(why, (reason) => `Disconnected: ${reason}. Reconnecting; no records are lost.`),
    onReconnect: () => ui.note('Reconnected.'),
  });
}
