import type { Action } from './use-action.ts';

/** Says what the last action did, or why it failed. */
export function Notice({ action: { message, isFailed } }: { action: Action }) {
  return (
    <p class={isFailed ? 'notice error' : 'notice'} role={isFailed ? 'alert' : 'status'}>
      {message}
    </p>
  );
}
