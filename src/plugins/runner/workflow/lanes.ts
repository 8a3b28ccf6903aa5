/** Limits how many tasks run concurrently; others wait in FIFO order. */
export function createLanes(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: Array<() => void> = [];
  let free = most;

  async function occupy<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  }
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return occupy(work);
  };
}
