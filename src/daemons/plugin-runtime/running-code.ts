import type { ExecutionRequest } from '../../contracts/index.ts';
import { type LoadedPlugin, readSourceCode, type SourceCode, sourceStamp } from '../../plugins/index.ts';

interface Snapshot {
  stamp: string;
  /** Code of the plugin. Absent while the code is being read, or if reading failed. */
  code?: SourceCode;
}

/** Maximum number of characters of stored code, over all plugins of a service. */
const MAX_TOTAL_CHARS = 64 * 1024 * 1024;

/**
 * Stores the code of running project and linked plugins. After a broken edit, new processes start from the stored code.
 * @spec docs/decisions/0050
 */
export class RunningCode {
  /** Latest valid code by folder. */
  readonly #sound = new Map<string, Snapshot>();
  #running = new Map<string, Snapshot>();
  #kept: readonly LoadedPlugin[] = [];
  #reading: Promise<void> = Promise.resolve();
  #chars = 0;

  /** Stores the valid code of a plugin's folder. `stamp` identifies the state of the files. */
  take(plugin: LoadedPlugin, stamp: string): void {
    if (this.#sound.get(plugin.root)?.stamp === stamp) return;
    const snapshot: Snapshot = { stamp };
    this.#sound.set(plugin.root, snapshot);
    this.#reading = this.#reading.then(() => this.#read(plugin, snapshot));
  }

  /** Resolves once all stored code is read. */
  settled(): Promise<void> {
    return this.#reading;
  }

  /**
   * Returns whether the running version of a plugin that is now broken on disk can be kept. A project or linked plugin
   * needs stored code. An installed plugin does not, because its files never change.
   */
  canKeep({ root, locked }: LoadedPlugin): boolean {
    return locked?.integrity != null || this.#running.get(root)?.code !== undefined;
  }

  /**
   * Sets the running plugins. Plugins in `kept` use their previous code, and all other plugins use the latest stored
   * code.
   */
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

  /**
   * Returns the stored code for a new process if the plugin's files on disk are now broken. Returns undefined if the
   * process should use the files on disk.
   */
  codeOf({ id, version, root }: ExecutionRequest['plugin']): SourceCode | undefined {
    const isKept = this.#kept.some(
      (plugin) => plugin.root === root && plugin.id === id && plugin.version === version,
    );
    return isKept ? this.#running.get(root)?.code : undefined;
  }

  async #read({ root, manifest }: LoadedPlugin, snapshot: Snapshot): Promise<void> {
    const code = await readSourceCode(root, manifest);
    // Files that changed while the code was being read are not validated yet. The file watcher reloads such files.
    if (code === undefined || sourceStamp(root, manifest) !== snapshot.stamp) return;
    if (this.#chars + charsOf(code) > MAX_TOTAL_CHARS) return;
    this.#chars += charsOf(code);
    snapshot.code = code;
  }
}

function charsOf(code: SourceCode | undefined): number {
  return Object.values(code ?? {}).reduce((sum, text) => sum + text.length, 0);
}
