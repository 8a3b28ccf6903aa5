import { beforeAll, onTestFinished } from 'vitest';

type CleanUp = () => unknown;

let ofHook: CleanUp[] | undefined;

/** Runs when the test has ended; for what `sharedByTests` starts, when the tests that share it have. */
export function atEnd(cleanUp: CleanUp): void {
  if (ofHook) ofHook.push(cleanUp);
  else onTestFinished(async () => void (await cleanUp()));
}

/** Starts something once for all tests of a file or a `describe`. */
export function sharedByTests<T>(start: () => Promise<T>): () => T {
  let started: { value: T } | undefined;
  beforeAll(async () => {
    const cleanUps: CleanUp[] = [];
    const end = async (): Promise<void> => {
      for (const cleanUp of cleanUps.toReversed()) await cleanUp();
    };
    ofHook = cleanUps;
    try {
      started = { value: await start() };
    } catch (error) {
      await end();
      throw error;
    } finally {
      ofHook = undefined;
    }
    return end;
  });
  return () => {
    if (!started) throw new Error('what the tests share is not started yet');
    return started.value;
  };
}
