const TRIES = 2;

/**
 * Returns a function that runs one probe for all callers, and keeps a result that is final. Another one, such as a
 * timeout on a busy machine, is probed once more, and again for the next caller.
 */
export function createSharedProbe<Result>(
  probe: () => Promise<Result>,
  isFinal: (result: Result) => boolean,
): () => Promise<Result> {
  let probed: Promise<Result> | undefined;

  async function decide(): Promise<Result> {
    let isKept = false;
    try {
      let found = await probe();
      for (let tries = 1; !isFinal(found) && tries < TRIES; tries++) found = await probe();
      isKept = isFinal(found);
      return found;
    } finally {
      if (!isKept) probed = undefined;
    }
  }
  return () => {
    probed ??= decide();
    return probed;
  };
}
