import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { removeFolder } from './remove-folder.ts';

const FOLDER = 'workspaces';
/** Run ids become names of folders, so other characters are refused. */
const RUN_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** The working folders of runs on this node. A folder is shared by the scripts of its run. */
export class Workspaces {
  readonly #root: string;
  readonly #logger: Logger;
  /** Runs that may have a folder here. */
  readonly #runs = new Set<string>();

  constructor({ dataDir, logger }: { dataDir: string; logger: Logger }) {
    this.#root = join(dataDir, FOLDER);
    this.#logger = logger;
  }

  /** Returns the folder of a run, which has the folder `files` for scripts. Creates both. */
  async open(runId: string): Promise<{ folder: string; files: string }> {
    const folder = this.#folderOf(runId);
    const files = join(folder, 'files');
    this.#runs.add(runId);
    await mkdir(files, { recursive: true, mode: 0o700 });
    return { folder, files };
  }

  /** Removes the folder of an ended run, if there is one. */
  async close(runId: string): Promise<void> {
    if (this.#runs.has(runId)) await this.#remove(runId);
  }

  /** Removes the folders of all runs that have ended. */
  async sweep(isOver: (runId: string) => Promise<boolean>): Promise<void> {
    const names = await readdir(this.#root).catch(() => []);
    for (const name of names.filter((one) => RUN_ID.test(one))) {
      this.#runs.add(name);
      if (await isOver(name)) await this.#remove(name);
    }
  }

  async #remove(runId: string): Promise<void> {
    try {
      await removeFolder(this.#folderOf(runId));
      this.#runs.delete(runId);
    } catch (error) {
      this.#logger.warn(`The working folder of run ${runId} could not be removed; a later sweep retries`, {
        error,
      });
    }
  }

  #folderOf(runId: string): string {
    if (!RUN_ID.test(runId)) throw new Error(`"${runId}" is not the id of a run.`);
    return join(this.#root, runId);
  }
}
