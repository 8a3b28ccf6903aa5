import type { InboxLog } from '../inbox-log.ts';

/** Deliveries whose end is in the journal but not in the database, which still lists them as unfinished. */
export interface UnappliedEnds {
  /** `place`: position of the end in the log. */
  add(webhookId: string, place: number): void;
  has(webhookId: string): boolean;
}

export function createUnappliedEnds(log: Pick<InboxLog, 'applied'>): UnappliedEnds {
  /** Ordered by position. */
  const places = new Map<string, number>();

  function dropPast(): void {
    for (const [webhookId, place] of places) {
      if (place > log.applied) return;
      places.delete(webhookId);
    }
  }

  return {
    add(webhookId, place) {
      dropPast();
      if (place <= log.applied) return;
      // Re-inserts an existing entry at the end of the map.
      places.delete(webhookId);
      places.set(webhookId, place);
    },
    has(webhookId) {
      dropPast();
      return places.has(webhookId);
    },
  };
}
