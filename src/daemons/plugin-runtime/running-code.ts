import type { ExecutionRequest } from '../../contracts/index.ts';
import { type LoadedPlugin, readSourceCode, type SourceCode, sourceStamp } from '../../plugins/index.ts';

interface Snapshot {
  stamp: string;
  /** Absent while it is read, and where it could not be. */
  code?: SourceCode;
}

/** Over all plugins of one service. */
const MAX_TOTAL_CHARS = 64 * 1024 * 1024;

/**
 * The code that project and linked plugins run on. A version that a broken edit left in place starts its later processes
 * from here, as its files are gone. @spec docs/decisions/0050
 */
export class RunningCode {
  /** As last found to be sound, by folder. */
  readonly #sound = new Map<string, Snapshot>();
  #running = new Map<string, Snapshot>();
  #kept: readonly LoadedPlugin[] = [];
  #reading: Promise<void> = Promise.resolve();
  #chars = 0;

  /** Takes down the sound code of a folder whose files have this stamp. */
  take(plugin: LoadedPlugin, stamp: string): void {
    if (this.#sound.get(plugin.root)?.stamp === stamp) return;
    const snapshot: Snapshot = { stamp };
    this.#sound.set(plugin.root, snapshot);
    this.#reading = this.#reading.then(() => this.#read(plugin, snapshot));
  }

  /** Settles once all that was taken is read. */
  settled(): Promise<void> {
    return this.#reading;
  }

  /** Whether the plugin can go on running although its files changed. Those of an installed one never do. */
  canKeep({ root, locked }: LoadedPlugin): boolean {
    return locked?.integrity != null || this.#running.get(root)?.code !== undefined;
  }

  /** These run from now on: the `kept` ones on the code they had, the others on what was last taken. */
  adopt(plugins: readonly LoadedPlugin[], kept: readonly LoadedPlugin[]): void {
    const next = new Map<string, Snapshot>();
    for (const { root } of plugins) {
      const isKept = kept.some((plugin) => plugin.root === root);
      const snapshot = (isKept ? this.#running : this.#sound).get(root);
      if (snapshot) next.set(root, snapshot);
    }
    this.#running = next;
    this.#kept = kept;
    for (const root of this.#sound.keys()) if (!next.has(root)) this.#sound.delete(root);
    this.#chars = [...new Set([...this.#sound.values(), ...next.values()])].reduce(
      (sum, { code }) => sum + charsOf(code),
      0,
    );
  }

  /** What a new process of a kept version runs on; undefined where the files on disk are what it runs. */
  codeOf({ id, version, root }: ExecutionRequest['plugin']): SourceCode | undefined {
    const isKept = this.#kept.some(
      (plugin) => plugin.root === root && plugin.id === id && plugin.version === version,
    );
    return isKept ? this.#running.get(root)?.code : undefined;
  }

  async #read({ root, manifest }: LoadedPlugin, snapshot: Snapshot): Promise<void> {
    const code = await readSourceCode(root, manifest);
    // Files that changed meanwhile were not checked; the watch has them read anew.
    if (code === undefined || sourceStamp(root, manifest) !== snapshot.stamp) return;
    if (this.#chars + charsOf(code) > MAX_TOTAL_CHARS) return;
    this.#chars += charsOf(code);
    snapshot.code = code;
  }
}

function charsOf(code: SourceCode | undefined): number {
  return Object.values(code ?? {}).reduce((sum, text) => sum + text.length, 0);
}
