import type { Clock } from '../../../../../kit/time/clock.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';

/**
 * Interval for polling the store while a delivery with the same id runs in another process, or in a process that has
 * died.
 */
const POLL_MS = 100;

export interface MarkerWaits {
  /** Registers a delivery that runs in this process. The returned function must be called at its end. */
  hold(key: string | undefined): () => void;
  /** Resolves when the delivery that claimed `key` has ended or its claim has expired. */
  settled(key: string): Promise<void>;
}

/**
 * Lets deliveries wait for a running delivery with the same id. Polls the store only if the running delivery belongs to
 * another process.
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
