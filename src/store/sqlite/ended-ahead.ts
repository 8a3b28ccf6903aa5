import type { InboxLog } from './inbox-log.ts';

/** Deliveries whose end is on disk and not in the database yet, where they still look like something to do. */
export interface EndedAhead {
  /** `place`: of the end, in the log. */
  add(webhookId: string, place: number): void;
  has(webhookId: string): boolean;
}

export function createEndedAhead(log: Pick<InboxLog, 'applied'>): EndedAhead {
  /** In the order of their places. */
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
      // Behind the others, were it here already.
      places.delete(webhookId);
      places.set(webhookId, place);
    },
    has(webhookId) {
      forget();
      return places.has(webhookId);
    },
  };
}
