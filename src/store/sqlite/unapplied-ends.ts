import type { InboxLog } from './inbox-log.ts';

/** Deliveries whose end is in the journal but not in the database, where they still look unfinished. */
export interface EndedAhead {
  /** `place`: position of the end in the log. */
  add(webhookId: string, place: number): void;
  has(webhookId: string): boolean;
}

export function createEndedAhead(log: Pick<InboxLog, 'applied'>): EndedAhead {
  /** Ordered by position. */
  const places = new Map<string, number>();

  function forget(): void {
    for (const [webhookId, place] of places) {
      if (place > log.applied) return;
      places.delete(webhookId);
    }
  }

  return {
    add(webhookId, place) {
      forget();
      if (place <= log.applied) return;
      // Re-inserts an existing entry at the end of the map.
      places.delete(webhookId);
      places.set(webhookId, place);
    },
    has(webhookId) {
      forget();
      return places.has(webhookId);
    },
  };
}
