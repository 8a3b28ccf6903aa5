import type { Logger } from '../../kit/telemetry/logger.ts';
import { systemClock } from '../../kit/time/clock.ts';

export interface SourceWatch {
  /** Resolves once every change on disk has been reported. */
  check(): Promise<void>;
  close(): void;
}

/** Watched items by name. The stamp of an item changes whenever the item changes. */
export type Stamps = ReadonlyMap<string, string>;

export interface SourceWatchOptions {
  stamp(): Promise<Stamps>;
  /** Whether the addition or removal of an item counts as a change. By default, every addition and removal counts. */
  isNews?(name: string): boolean;
  /** Callback that is called after a change. Calls never overlap, and are repeated after a failure. */
  changed(): Promise<void>;
  logger: Logger;
}

const POLL_MS = 200;
/**
 * Time to wait after a change. Editors write several files for one change, but one change must cause only one reload.
 */
const SETTLE_MS = 60;
const MAX_SETTLE_POLLS = 5;
/** Maximum share of a CPU core that polling uses, regardless of the number of files. */
const MAX_SHARE = 1 / 50;
const MAX_POLL_MS = 5000;
/**
 * Pause after a change. The pause doubles with each further change, because each change makes every service reload the
 * plugins.
 */
const MIN_REST_MS = 400;
const MAX_REST_MS = 10_000;

/**
 * Polls files for changes, because some mounts report no file events. Uses the wall clock, because file modification
 * times are wall-clock times. @spec docs/decisions/0050
 */
export async function watchSources(options: SourceWatchOptions): Promise<SourceWatch> {
  const watch = new PollingWatch(options, await options.stamp());
  watch.schedule();
  return watch;
}

class PollingWatch implements SourceWatch {
  readonly #options: SourceWatchOptions;
  #known: Stamps;
  #running: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;
  #delayMs = POLL_MS;
  #restMs = 0;
  #isClosed = false;
  #cancelTimer = (): void => {};

  constructor(options: SourceWatchOptions, known: Stamps) {
    this.#options = options;
    this.#known = known;
  }

  /** Resolves when the next poll has ended. A poll in progress might have missed the caller's change. */
  check(): Promise<void> {
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      this.#running = this.#poll();
      return this.#running;
    });
    return this.#queued;
  }

  schedule(): void {
    if (this.#isClosed) return;
    this.#cancelTimer = systemClock.after(this.#delayMs, () => {
      this.check().then(
        () => this.schedule(),
        (error) => {
          this.#options.logger.error('The watched files cannot be read', { error });
          this.#delayMs = MAX_POLL_MS;
          this.schedule();
        },
      );
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
  }

  async #poll(): Promise<void> {
    const { stamp, changed, isNews = () => true, logger } = this.#options;
    const startedAt = performance.now();
    const found = this.#isClosed ? this.#known : await stamp();
    this.#delayMs = Math.min(Math.max(POLL_MS, (performance.now() - startedAt) / MAX_SHARE), MAX_POLL_MS);
    if (!differ(this.#known, found, isNews)) {
      this.#restMs = Math.floor(this.#restMs / 2);
      this.#known = found;
      return;
    }
    this.#restMs = Math.min(Math.max(MIN_REST_MS, this.#restMs * 2), MAX_REST_MS);
    this.#delayMs = Math.max(this.#delayMs, this.#restMs);
    const next = await settled(stamp, found);
    try {
      await changed();
      this.#known = next;
    } catch (error) {
      this.#delayMs = MAX_POLL_MS;
      logger.error('Changed files could not be reloaded', { error });
    }
  }
}

/** Returns the stamps once two consecutive polls find the same stamps, or after the last allowed poll. */
async function settled(stamp: SourceWatchOptions['stamp'], first: Stamps): Promise<Stamps> {
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

function differ(before: Stamps, after: Stamps, isNews: (name: string) => boolean): boolean {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].some((name) =>
    before.has(name) && after.has(name) ? before.get(name) !== after.get(name) : isNews(name),
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve));
}
