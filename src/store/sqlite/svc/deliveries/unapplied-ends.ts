import type { InboxLog } from '../inbox-log.ts';

/** Ended deliveries that are still unfinished in the database, because their end is only in the journal. */
export interface UnappliedEnds {
  /** Adds an ended delivery. `sequence` is the sequence number of the journal frame that contains the end. */
  add(webhookId: string, sequence: number): void;
  has(webhookId: string): boolean;
}

export function createUnappliedEnds(log: Pick<InboxLog, 'applied'>): UnappliedEnds {
  /** Journal sequence numbers by webhook id, in ascending order of the sequence numbers. */
  const sequences = new Map<string, number>();

  function dropPast(): void {
    for (const [webhookId, sequence] of sequences) {
      if (sequence > log.applied) return;
      sequences.delete(webhookId);
    }
  }

  return {
    add(webhookId, sequence) {
      dropPast();
      if (sequence <= log.applied) return;
      // Deleting the id first moves its entry to the end of the map. The sequence numbers in the map thus stay in
      // order.
      sequences.delete(webhookId);
      sequences.set(webhookId, sequence);
    },
    has(webhookId) {
      dropPast();
      return sequences.has(webhookId);
    },
  };
}
