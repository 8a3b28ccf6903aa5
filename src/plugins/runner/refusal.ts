import { RunnerFailure } from './failure.ts';

/** Returns a function that always throws. The returned function replaces a function that plugins must not call. */
export function refusal(name: string): () => never {
  return () => {
    throw refused(name);
  };
}

export function refused(name: string): RunnerFailure {
  return new RunnerFailure('PERMISSION_DENIED', `${name} is not available to plugins.`, { function: name });
}
