import type { Clock } from '../../../../../kit/time/clock.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';

/**
 * Interval for polling the store while another process runs a delivery with the same id, in ms. Polling is necessary,
 * because a process that died cannot report the end of its delivery.
 */
const POLL_MS = 100;

export interface MarkerWaits {
  /**
   * Registers a running delivery of this process. The caller must call the returned function when the delivery ends.
   */
  hold(key: string | undefined): () => void;
  /** Resolves when the delivery that claimed `key` has ended or the claim has expired. */
  settled(key: string): Promise<void>;
}

/**
 * Makes a delivery wait for a running delivery with the same id. The store is polled only if another process runs that
 * delivery.
 */
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
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
  };
}
