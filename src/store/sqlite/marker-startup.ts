import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from '../../kit/logger.ts';
import { SQL } from './delivery-statements.ts';
import type { InboxLog } from './inbox-log.ts';
import type { MarkerIndex } from './marker-index.ts';

/** Markers of one answer of the committing thread, and then of one turn here: a millisecond or two. */
const LOADED_ROWS = 5000;
/** Ids of one transaction that looks for claims of a process that died. */
const RELEASED_IDS = 20_000;
const DIGEST_PREFIX_BYTES = 8;

export interface MarkerLoad {
  /** Undefined once all are indexed; else settles when they are. Rejects with STORE_ERROR; the next call tries again. */
  ready(): Promise<void> | undefined;
  close(): void;
}

/** Indexes the markers up to an id that were there at the start, in the background. */
export function startMarkerLoad(
  log: InboxLog,
  index: MarkerIndex,
  { from, until }: { from: number; until: number },
): MarkerLoad {
  let loadedUntil = from - 1;
  let isLoaded = loadedUntil >= until;
  let isClosed = false;
  let loading: Promise<void> | undefined;

  async function load(): Promise<void> {
    while (!isClosed) {
      const { ids, digests } = await log.markers({ after: loadedUntil, until, limit: LOADED_ROWS });
      for (const [place, id] of ids.entries()) {
        const at = place * DIGEST_PREFIX_BYTES;
        index.add(digests.subarray(at, at + DIGEST_PREFIX_BYTES), id);
      }
      isLoaded = ids.length < LOADED_ROWS;
      if (isLoaded) return;
      loadedUntil = ids.at(-1)!;
      await turn();
    }
  }

  function ready(): Promise<void> | undefined {
    if (isLoaded || isClosed) return undefined;
    loading ??= load().finally(() => {
      loading = undefined;
    });
    return loading;
  }
  ready()?.catch(() => {});
  return {
    ready,
    close() {
      isClosed = true;
    },
  };
}

export interface PendingRelease {
  start(range: { from: number; until: number }): void;
  /** Settles when nothing is under way. */
  close(): Promise<void>;
}

/** Deletes the `pending` markers that a process left which died, a bounded stretch a transaction. */
export function createPendingRelease(log: InboxLog, logger: Logger): PendingRelease {
  let isClosed = false;
  let running: Promise<void> = Promise.resolve();

  async function release(from: number, until: number): Promise<void> {
    for (let after = from - 1; after < until && !isClosed; after += RELEASED_IDS) {
      const last = Math.min(after + RELEASED_IDS, until);
      await log.commit({ guarded: false, steps: [[SQL.releasePendingBetween, [after, last]]] });
    }
  }
  return {
    start({ from, until }) {
      running = running
        .then(() => release(from, until))
        // They lapse with their leases at the latest.
        .catch((error) => {
          if (!isClosed) logger.warn('Claims of the former gateway could not be deleted', { error });
        });
    },
    async close() {
      isClosed = true;
      await running;
    },
  };
}
