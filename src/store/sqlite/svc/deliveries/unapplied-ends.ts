import type { InboxLog } from '../inbox-log.ts';

/** Ended deliveries that the database still lists as unfinished, because their end is only in the journal. */
export interface UnappliedEnds {
  /** Adds an ended delivery. `sequence` is the journal sequence number of its end. */
  add(webhookId: string, sequence: number): void;
  has(webhookId: string): boolean;
}

export function createUnappliedEnds(log: Pick<InboxLog, 'applied'>): UnappliedEnds {
  /** Sequence numbers of ends by webhook id, in ascending order. */
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
      // A repeated id moves to the end of the map, which keeps the sequence numbers in order.
      sequences.delete(webhookId);
      sequences.set(webhookId, sequence);
    },
    has(webhookId) {
      dropPast();
      return sequences.has(webhookId);
    },
  };
}
