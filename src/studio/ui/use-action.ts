import { useState } from 'preact/hooks';

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
        (error: Error) => setState({ message: error.message, isFailed: true, isBusy: false }),
      );
    },
  };
}
