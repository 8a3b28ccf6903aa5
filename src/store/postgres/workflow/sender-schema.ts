/** Adds the sender of a signal. */
export const SIGNAL_SENDERS = 'alter table svc.run_inbox add column sent_by text;';
