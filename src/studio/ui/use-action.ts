import { useState } from 'preact/hooks';
import { ApiError } from '../api/call.ts';

export interface Action {
  /** Why the last action failed, or what it did. */
  message: string;
  isFailed: boolean;
  isBusy: boolean;
  /** Runs an action. Its result is the message. */
  run(action: () => Promise<string>): void;
}

/** State of the buttons of a screen: one action at a time, with the message of the last one. */
export function useAction(): Action {
  const [state, setState] = useState({ message: '', isFailed: false, isBusy: false });
  return {
    ...state,
    run(action) {
      setState({ message: '', isFailed: false, isBusy: true });
      action().then(
        (message) => setState({ message, isFailed: false, isBusy: false }),
        (error: Error) => setState({ message: textOf(error), isFailed: true, isBusy: false }),
      );
    },
  };
}

/** Returns why an action failed, and what to do if the gateway knows. */
function textOf(error: Error): string {
  const hint = error instanceof ApiError ? error.details.hint : undefined;
  return typeof hint === 'string' ? `${error.message} ${hint}` : error.message;
}
