import type { Clock } from '../../../../kit/clock.ts';
import type { WebhookInbox } from '../../../../store/ports/index.ts';

/** How often a wait looks at the store: the winner may run in another process, or have died. */
const LOOK_EVERY_MS = 100;

export interface MarkerWaits {
  /** Says that this process runs the delivery behind `key`; call the returned function when it ended. */
  hold(key: string | undefined): () => void;
  /** Settles when the delivery behind `key` ended, or its claim lapsed. */
  settled(key: string): Promise<void>;
}

/** Lets the losers of a race for one delivery id wait for the winner, without a poll when it runs here. */
export function createMarkerWaits(inbox: WebhookInbox, clock: Clock): MarkerWaits {
  const running = new Map<string, { ended: Promise<void>; end: () => void }>();
  return {
    hold(key) {
      if (key === undefined) return () => {};
      const { promise, resolve } = Promise.withResolvers<void>();
      const entry = { ended: promise, end: resolve };
      running.set(key, entry);
      return () => {
        if (running.get(key) === entry) running.delete(key);
        entry.end();
      };
    },
    async settled(key) {
      const here = running.get(key);
      if (here) return here.ended;
      while ((await inbox.seen(key, clock.now())) === 'pending') {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    },
  };
}
