/** Notifies readers of a run about changes. */
export interface RunWatch {
  changed(runId: string): void;
  /** Calls `look` after each change until the returned function is called. */
  watch(runId: string, look: () => void): () => void;
}

export function createRunWatch(): RunWatch {
  const watchers = new Map<string, Set<() => void>>();
  return {
    changed(runId) {
      for (const look of watchers.get(runId) ?? []) look();
    },
    watch(runId, look) {
      const looks = watchers.get(runId) ?? new Set();
      looks.add(look);
      watchers.set(runId, looks);
      return () => {
        looks.delete(look);
        if (looks.size === 0) watchers.delete(runId);
      };
    },
  };
}
