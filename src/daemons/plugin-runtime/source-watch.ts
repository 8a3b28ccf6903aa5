import type { Logger } from '../../kit/telemetry/logger.ts';
import { systemClock } from '../../kit/time/clock.ts';

export interface SourceWatch {
  /** Resolves once every change on disk has been reported. */
  check(): Promise<void>;
  close(): void;
}

/** Watched items, each with a stamp that changes with it. */
export type Stamps = ReadonlyMap<string, string>;

export interface SourceWatchOptions {
  stamp(): Promise<Stamps>;
  /** Whether adding or removing this item counts as a change. Default: always. */
  isNews?(name: string): boolean;
  /** Reports a change. Calls never overlap; repeated after a failure. */
  changed(): Promise<void>;
  logger: Logger;
}

const POLL_MS = 200;
/** Editors and version control write several files per change. */
const SETTLE_MS = 60;
const MAX_SETTLE_POLLS = 5;
/** Polling uses at most this share of a core, regardless of the number of files. */
const MAX_SHARE = 1 / 50;
const MAX_POLL_MS = 5000;
/** Pause after a change, doubled after each subsequent one: each reloads the plugins of every service. */
const MIN_REST_MS = 400;
const MAX_REST_MS = 10_000;

/**
 * Polls files for changes, which also works on mounts without file events (containers, network file systems). Uses
 * real time, as file stamps do. @spec docs/decisions/0050
 */
export async function watchSources(options: SourceWatchOptions): Promise<SourceWatch> {
  const { stamp, changed, isNews = () => true, logger } = options;
  let known = await stamp();
  let running: Promise<void> = Promise.resolve();
  let queued: Promise<void> | undefined;
  let delayMs = POLL_MS;
  let restMs = 0;
  let isClosed = false;
  let cancelTimer = (): void => {};

  async function poll(): Promise<void> {
    const startedAt = performance.now();
    const found = isClosed ? known : await stamp();
    delayMs = Math.min(Math.max(POLL_MS, (performance.now() - startedAt) / MAX_SHARE), MAX_POLL_MS);
    const isChanged = differ(known, found, isNews);
    restMs = isChanged ? Math.min(Math.max(MIN_REST_MS, restMs * 2), MAX_REST_MS) : Math.floor(restMs / 2);
    if (!isChanged) {
      known = found;
      return;
    }
    delayMs = Math.max(delayMs, restMs);
    const next = await settled(found);
    try {
      await changed();
      known = next;
    } catch (error) {
      delayMs = MAX_POLL_MS;
      logger.error('Changed files could not be reloaded', { error });
    }
  }

  async function settled(first: Stamps): Promise<Stamps> {
    let last = first;
    for (let polls = 0; polls < MAX_SETTLE_POLLS; polls++) {
      await pause(SETTLE_MS);
      const next = await stamp();
      const isSettled = !differ(last, next, () => true);
      last = next;
      if (isSettled) break;
    }
    return last;
  }

  /** Joins a poll that has not started; a running one may have missed the caller's change. */
  function check(): Promise<void> {
    queued ??= running.then(() => {
      queued = undefined;
      running = poll();
      return running;
    });
    return queued;
  }

  function schedule(): void {
    if (isClosed) return;
    cancelTimer = systemClock.after(delayMs, () => {
      check().then(schedule, (error) => {
        logger.error('The watched files cannot be read', { error });
        delayMs = MAX_POLL_MS;
        schedule();
      });
    });
  }
  schedule();
  return {
    check,
    close() {
      isClosed = true;
      cancelTimer();
    },
  };
}

function differ(before: Stamps, after: Stamps, isNews: (name: string) => boolean): boolean {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].some((name) =>
    before.has(name) && after.has(name) ? before.get(name) !== after.get(name) : isNews(name),
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve));
}
