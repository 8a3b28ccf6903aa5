import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../../kit/clock.ts';
import type { WrittenEvent } from '../../../kit/server-sent-events.ts';
import type { Page } from '../domain/desks/run-desk.ts';
import type { RunWatch } from '../domain/desks/run-watch.ts';

export interface LiveSource<Item extends { id: number }> {
  watch: RunWatch;
  clock: Clock;
  runId: string;
  /** What comes after a cursor. */
  page(cursor: string | undefined): Promise<Page<Item>>;
  /** Whether the run is over: the stream ends after its last item. */
  isOver(): Promise<boolean>;
}

/** A change of another process is seen too. */
const LOOK_EVERY_MS = 1000;

export function wantsStream(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('text/event-stream') === true;
}

/** Where a client that lost its stream goes on. */
export function resumeAt(request: FastifyRequest, cursor: string | undefined): string | undefined {
  const last = request.headers['last-event-id'];
  return typeof last === 'string' && last !== '' ? last : cursor;
}

/**
 * Everything after the cursor, then what comes, until the run is over (event `end`). Each has its id, so a client that
 * reconnects misses nothing and sees nothing twice.
 */
export async function* followRun<Item extends { id: number }>(
  { watch, clock, runId, page, isOver }: LiveSource<Item>,
  cursor: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<WrittenEvent[], void> {
  let at = cursor;
  let changed = false;
  let wake: () => void = () => {};
  const look = (): void => {
    changed = true;
    wake();
  };
  const stopWatching = watch.watch(runId, look);
  signal.addEventListener('abort', look);
  try {
    while (!signal.aborted) {
      changed = false;
      // Asked before the last page is read: what was written before the end is on it.
      const over = await isOver();
      for (let more = true; more; ) {
        const { items, nextCursor } = await page(at);
        yield items.map((item) => ({ id: String(item.id), data: JSON.stringify(item) }));
        // What a filter left out is behind us too: a page may be empty and not the last.
        at = nextCursor ?? items.at(-1)?.id.toString() ?? at;
        more = nextCursor !== null;
      }
      if (over) {
        yield [{ event: 'end', data: '{}' }];
        return;
      }
      if (!changed)
        await new Promise<void>((resolve) => {
          const stopTimer = clock.after(LOOK_EVERY_MS, resolve);
          wake = () => {
            stopTimer();
            resolve();
          };
        });
    }
  } finally {
    stopWatching();
  }
}
