import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;
const QUIET_POLLS = 8;

/** Resolves with a count that has begun and no longer grows: what a held writer has written. */
export async function settled(read: () => number): Promise<number> {
  let last = 0;
  for (let quiet = 0; quiet < QUIET_POLLS; ) {
    await sleep(POLL_MS);
    const now = read();
    quiet = now > 0 && now === last ? quiet + 1 : 0;
    last = now;
  }
  return last;
}
