import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { DiskWatch } from './disk-watch.ts';
import type { FolderLimits } from './folder-walk.ts';
import { Workspace, type WorkspaceLease } from './workspace.ts';

const FOLDER = 'workspaces';
/** Run ids become names of folders, so other characters are refused. */
const RUN_ID = /^[A-Za-z0-9_-]{1,128}$/;

export interface WorkspacesDeps {
  dataDir: string;
  logger: Logger;
  limits?: FolderLimits;
}

/** The working folders of runs on this node. A folder is shared by the scripts of its run. */
export class Workspaces {
  readonly #root: string;
  readonly #disk: DiskWatch;
  readonly #logger: Logger;
  /** Runs that may have a folder here, and runs that have ended since the last sweep. */
  readonly #workspaces = new Map<string, Workspace>();

  constructor({ dataDir, logger, limits }: WorkspacesDeps) {
    this.#root = join(dataDir, FOLDER);
    this.#disk = new DiskWatch(limits);
    this.#logger = logger;
  }

  /** Returns a lease of the folder of a run. Throws if the folder has been closed. */
  async open(runId: string): Promise<WorkspaceLease> {
    return this.#workspaceOf(runId).open();
  }

  /** Removes the folder of an ended run, if there is one, once no script uses it. */
  async close(runId: string): Promise<void> {
    await this.#workspaces.get(runId)?.close();
  }

  /** Removes the folders of all runs that have ended. */
  async sweep(isOver: (runId: string) => Promise<boolean>): Promise<void> {
    const names = await readdir(this.#root).catch(() => []);
    const found = names.filter((name) => RUN_ID.test(name));
    for (const runId of new Set([...this.#workspaces.keys(), ...found])) {
      const workspace = this.#workspaceOf(runId);
      if ((await isOver(runId)) && (await workspace.close())) this.#workspaces.delete(runId);
    }
  }

  #workspaceOf(runId: string): Workspace {
    const known = this.#workspaces.get(runId);
    if (known) return known;
    if (!RUN_ID.test(runId)) throw new Error(`"${runId}" is not the id of a run.`);
    const folder = join(this.#root, runId);
    const made = new Workspace({ folder, disk: this.#disk, logger: this.#logger });
    this.#workspaces.set(runId, made);
    return made;
  }
}
