/** Function that returns an opened store, and opens the store first if necessary. */
export interface Opener<Store> {
  (): Promise<Store>;
  /** Returns the store if it was opened or is being opened. */
  opened(): Promise<Store> | undefined;
}

/**
 * Returns a function that opens a store on first use. After a failure, the next call opens the store again, because the
 * cause, such as a full disk, might be gone.
 */
export function opener<Store>(open: () => Promise<Store>): Opener<Store> {
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return Object.assign(store, { opened: () => opened });
}
