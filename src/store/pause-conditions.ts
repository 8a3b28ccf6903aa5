/** SQL condition for unfinished runs that can be paused. Runs that are being cancelled clean up instead. */
export const PAUSABLE = `status in ('queued', 'running', 'waiting', 'interrupted')`;

/** SQL condition for runs that are shown as paused. */
export const PAUSED = `(pause_scope is not null and ${PAUSABLE})`;

/** SQL condition for runs that may be claimed. A pause does not keep a cancelled run from cleaning up. */
export const UNPAUSED = `(pause_scope is null or status = 'cancelling')`;
