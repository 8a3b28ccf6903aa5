/** Notifies clients that watch a run about changes of the run. */
export class RunWatch {
  readonly #watchers = new Map<string, Set<() => void>>();

  changed(runId: string): void {
    for (const look of this.#watchers.get(runId) ?? []) look();
  }

  /** Calls `look` after each change of the run, until the returned function is called. */
  watch(runId: string, look: () => void): () => void {
    const looks = this.#watchers.get(runId) ?? new Set();
    looks.add(look);
    this.#watchers.set(runId, looks);
    return () => {
      looks.delete(look);
      if (looks.size === 0) this.#watchers.delete(runId);
    };
  }
}
