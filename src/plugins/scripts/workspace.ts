import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { removeFolder } from './remove-folder.ts';

/** A script's right to use the working folder of its run. */
export interface WorkspaceLease extends AsyncDisposable {
  /** The folder of the run, which scripts cannot see. */
  readonly folder: string;
  /** The folder in it for the files of scripts. */
  readonly files: string;
}

/** The working folder of a run on this node. It is removed when the run has ended and no script uses it any more. */
export class Workspace {
  readonly #folder: string;
  readonly #logger: Logger;
  #leases = 0;
  #isClosed = false;
  #removal: Promise<boolean> | undefined;

  constructor(folder: string, logger: Logger) {
    this.#folder = folder;
    this.#logger = logger;
  }

  /** Creates the folder, if it does not exist. Throws if the run has ended. */
  async open(): Promise<WorkspaceLease> {
    if (this.#isClosed) throw new Error('The run has ended, so its working folder is not opened again.');
    this.#leases++;
    const files = join(this.#folder, 'files');
    try {
      await mkdir(files, { recursive: true, mode: 0o700 });
    } catch (error) {
      await this.#release();
      throw error;
    }
    return { folder: this.#folder, files, [Symbol.asyncDispose]: () => this.#release() };
  }

  /** Removes the folder, or has the last script remove it. Returns whether it has been removed. */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    if (this.#leases > 0) return false;
    this.#removal ??= this.#remove();
    return this.#removal;
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
