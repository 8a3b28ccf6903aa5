import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { SCRIPT_PATHS } from '../sandbox/script-args.ts';
import type { DiskWatch } from './disk-watch.ts';
import { removeFolder } from './remove-folder.ts';

/** A script's right to use the working folder of its run, until the script releases it. */
export interface WorkspaceLease {
  /** The folder of the run, which scripts cannot see. */
  readonly folder: string;
  /** The folder in it for the files of scripts. */
  readonly files: string;
  /** The folder in it for caches of programs, which can be too large for memory. */
  readonly home: string;
  /**
   * Watches the size of the folder. `onOver` gets the limit that its scripts have exceeded. Returns the function that
   * stops it.
   */
  watch(onOver: OnOver): () => void;
  release(): Promise<void>;
}

type OnOver = (what: string) => void;

export interface WorkspaceDeps {
  folder: string;
  disk: Pick<DiskWatch, 'watch'>;
  logger: Logger;
}

/** The working folder of a run on this node. It is removed when the run has ended and no script uses it any more. */
export class Workspace {
  readonly #folder: string;
  readonly #files: string;
  readonly #home: string;
  readonly #disk: WorkspaceDeps['disk'];
  readonly #logger: Logger;
  readonly #watching = new Set<OnOver>();
  #stopWatch: (() => void) | undefined;
  #leases = 0;
  #isClosed = false;
  #removal: Promise<boolean> | undefined;

  constructor({ folder, disk, logger }: WorkspaceDeps) {
    this.#folder = folder;
    this.#files = join(folder, 'files');
    this.#home = join(folder, 'home');
    this.#disk = disk;
    this.#logger = logger;
  }

  /** Creates the folder, if it does not exist. Throws if the run has ended. */
  async open(): Promise<WorkspaceLease> {
    if (this.#isClosed) throw new Error('The run has ended, so its working folder is not opened again.');
    this.#leases++;
    try {
      for (const path of [this.#files, this.#home]) await mkdir(path, { recursive: true, mode: 0o700 });
    } catch (error) {
      await this.#release();
      throw error;
    }
    return {
      folder: this.#folder,
      files: this.#files,
      home: this.#home,
      watch: (onOver) => this.#watch(onOver),
      release: () => this.#release(),
    };
  }

  /** Removes the folder, or has the last script remove it. Returns whether it has been removed. */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    if (this.#leases > 0) return false;
    this.#removal ??= this.#remove();
    return this.#removal;
  }

  /** Polls the folder once for all its scripts, which can run at the same time. */
  #watch(onOver: OnOver): () => void {
    this.#watching.add(onOver);
    const roots = [
      { path: this.#files, shownAs: SCRIPT_PATHS.folder },
      { path: this.#home, shownAs: SCRIPT_PATHS.home },
    ];
    this.#stopWatch ??= this.#disk.watch(roots, (what) => {
      this.#stopWatch = undefined;
      for (const end of this.#watching) end(what);
    });
    return () => {
      this.#watching.delete(onOver);
      if (this.#watching.size > 0) return;
      this.#stopWatch?.();
      this.#stopWatch = undefined;
    };
  }

  async #release(): Promise<void> {
    this.#leases--;
    if (this.#isClosed) await this.close();
  }

  async #remove(): Promise<boolean> {
    try {
      await removeFolder(this.#folder);
      return true;
    } catch (error) {
      this.#removal = undefined;
      this.#logger.warn(
        `The working folder ${this.#folder} of an ended run could not be removed. It is tried again within an hour. If that fails too, remove the folder.`,
        { error },
      );
      return false;
    }
  }
}
