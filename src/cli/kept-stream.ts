import type { CommandContext } from './context.ts';
import { followEvents } from './event-stream.ts';

/** What one answer brings of what was before. */
const MOST = 1000;

export interface KeptStream {
  path: string;
  query: Record<string, unknown>;
  /** How many earlier records. */
  count: number;
  /** A record, as JSON. */
  take(line: string): void;
}

/** Hands on the latest `count` records and then each new one, until the process ends; throws as `followEvents` does. */
export async function followKept(
  context: CommandContext,
  { path, query, count, take }: KeptStream,
): Promise<void> {
  const { ui } = context;
  await followEvents(context, {
    path,
    query: { follow: '1', limit: Math.min(count, MOST), ...query },
    // The first event is the place alone, and so are signs of life.
    take({ data }) {
      if (data !== '') take(data);
    },
    lost: (why) => ui.noteOf(why, (reason) => `Cut off: ${reason}. Trying again; nothing will be missing.`),
    back: () => ui.note('Connected again.'),
  });
}
