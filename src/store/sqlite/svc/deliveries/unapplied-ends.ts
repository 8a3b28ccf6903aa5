import type { InboxLog } from '../inbox-log.ts';

/** Deliveries whose end is in the journal but not in the database, which still lists them as unfinished. */
export interface UnappliedEnds {
  /** Adds an ended delivery; `place` is the position of its end in the log. */
  add(webhookId: string, place: number): void;
  has(webhookId: string): boolean;
}

export function createUnappliedEnds(log: Pick<InboxLog, 'applied'>): UnappliedEnds {
  /** Log positions by webhook id, in ascending order of position. */
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
