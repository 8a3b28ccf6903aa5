import { RunnerFailure } from './failure.ts';

/** A function that replaces one that plugins may not call. */
export function refusal(name: string): () => never {
  return () => {
    throw refused(name);
  };
}

export function refused(name: string): RunnerFailure {
  return new RunnerFailure('PERMISSION_DENIED', `${name} is not available to plugins.`, { function: name });
}
