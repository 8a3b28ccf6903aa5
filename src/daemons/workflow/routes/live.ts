import type { FastifyRequest } from 'fastify';
import type { ServerSentEvent } from '../../../kit/streams/server-sent-events.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { Page } from '../domain/runs/pages.ts';
import type { RunWatch } from '../domain/runs/run-watch.ts';

export interface LiveSource<Item extends { id: number }> {
  watch: RunWatch;
  clock: Clock;
  runId: string;
  /** Returns the page of items after a cursor. */
  page(cursor: string | undefined): Promise<Page<Item>>;
  /** Returns whether the run has ended. The stream of an ended run ends after the last item. */
  isOver(): Promise<boolean>;
}

/** Poll interval for detecting changes by other processes. */
const LOOK_EVERY_MS = 1000;

export function wantsStream(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('text/event-stream') === true;
}

/** Returns the `Last-Event-ID` header of a reconnecting client, or else the given cursor. */
export function resumeAt(request: FastifyRequest, cursor: string | undefined): string | undefined {
  const last = request.headers['last-event-id'];
  return typeof last === 'string' && last !== '' ? last : cursor;
}

/**
 * Yields the items after the cursor until the run has ended, then the event `end`. Each event has the id of its item,
 * so that a client can resume after that item.
 */
export async function* followRun<Item extends { id: number }>(
  { watch, clock, runId, page, isOver }: LiveSource<Item>,
  cursor: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent[], void> {
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
      // The end of the run is checked before the page is read. The last page therefore includes all items from before
      // the end.
      const over = await isOver();
      for (let more = true; more; ) {
        const { items, nextCursor } = await page(at);
        yield items.map((item) => ({ id: String(item.id), data: JSON.stringify(item) }));
        // A filter can leave a page empty although more items follow. The cursor then advances past the filtered
        // items.
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
