import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { MARKER_DIGEST_BYTES } from '../committer/protocol.ts';
import { SQL } from '../deliveries/statements.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { MarkerIndex } from './marker-index.ts';

/** Number of markers that one request reads. Indexing these markers takes one or two milliseconds. */
const LOADED_ROWS = 5000;
/** Size of the id range in which one transaction releases the claims of dead processes. */
const RELEASED_IDS = 20_000;

export interface MarkerLoad {
  /**
   * Resolves when all markers are indexed. Returns undefined if all markers are already indexed. After a rejection with
   * STORE_ERROR, the next call resumes the indexing.
   */
  ready(): Promise<void> | undefined;
  close(): void;
}

/** Indexes the existing markers in the background. */
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
        const at = place * MARKER_DIGEST_BYTES;
        index.add(digests.subarray(at, at + MARKER_DIGEST_BYTES), id);
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
  close(): Promise<void>;
}

/** Deletes the `pending` markers of dead processes. Each transaction covers a limited range of ids. */
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
        // A `pending` marker that could not be deleted expires later by its `expires_at`.
        .catch((error) => {
          if (!isClosed)
            logger.warn(
              'Pending idempotency markers of the previous gateway could not be deleted; they expire with their leases',
              { error },
            );
        });
    },
    async close() {
      isClosed = true;
      await running;
    },
  };
}
