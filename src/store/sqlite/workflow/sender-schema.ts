/** Adds the sender of a signal. */
export const SIGNAL_SENDERS = 'alter table inbox add column sent_by text;';
