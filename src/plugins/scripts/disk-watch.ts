import { systemClock } from '../../kit/time/clock.ts';
import { type FolderLimits, FolderWalk, type Root } from './folder-walk.ts';

const WATCH_MS = 250;
/** A walk is followed by a pause of this many times its duration, so that large folders do not take up the event loop. */
const PAUSE_FACTOR = 4;

const LIMITS: FolderLimits = { bytes: 1024 * 1024 * 1024, files: 50_000 };

interface Watched {
  /** Folders whose sizes are added up. */
  roots: readonly Root[];
  onOver(what: string): void;
}

/** Polls the sizes of working folders, one after the other. */
export class DiskWatch {
  readonly #limits: FolderLimits;
  readonly #watched = new Set<Watched>();
  #isRunning = false;

  constructor(limits: FolderLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Watches folders until they exceed a limit, or the returned function is called. */
  watch(roots: readonly Root[], onOver: (what: string) => void): () => void {
    const watched = { roots, onOver };
    this.#watched.add(watched);
    if (!this.#isRunning) void this.#run();
    return () => void this.#watched.delete(watched);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#watched.size > 0) {
      await pause(WATCH_MS);
      for (const watched of [...this.#watched]) await this.#walk(watched);
    }
    this.#isRunning = false;
  }

  async #walk(watched: Watched): Promise<void> {
    const isStopped = (): boolean => !this.#watched.has(watched);
    if (isStopped()) return;
    const startedAt = systemClock.monotonic();
    const fault = await new FolderWalk(watched.roots, this.#limits).fault(isStopped);
    if (fault !== undefined && this.#watched.delete(watched)) watched.onOver(fault);
    await pause((systemClock.monotonic() - startedAt) * PAUSE_FACTOR);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => systemClock.after(ms, resolve));
