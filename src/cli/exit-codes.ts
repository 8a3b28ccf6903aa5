import type { PlatformCode } from '../contracts/index.ts';
import type { PlatformError } from '../kit/errors/errors.ts';

/** Exit codes of the CLI. @spec docs/errors.md "Exit codes of the command line" */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  inputNeeded: 3,
  notAllowed: 4,
  unreachable: 5,
  timedOut: 6,
  /** Exit code after Ctrl-C at a prompt. Outside of prompts, SIGINT ends the process with this code. */
  interrupted: 130,
} as const;

/** Exit codes of errors that scripts might need to distinguish from other failures. */
export const EXIT_BY_CODE: Partial<Record<PlatformCode, number>> = {
  UNAUTHORIZED: EXIT.notAllowed,
  FORBIDDEN: EXIT.notAllowed,
  PERMISSION_DENIED: EXIT.notAllowed,
  UPSTREAM_UNAVAILABLE: EXIT.unreachable,
  HOST_UNAVAILABLE: EXIT.unreachable,
  EXECUTION_TIMEOUT: EXIT.timedOut,
  UPSTREAM_TIMEOUT: EXIT.timedOut,
  REQUEST_TIMEOUT: EXIT.timedOut,
};

export function exitCodeOf(error: PlatformError): number {
  if (error.name === 'UsageError') return EXIT.usage;
  if (error.name === 'InputNeededError') return EXIT.inputNeeded;
  if (error.name === 'CancelledError') return EXIT.interrupted;
  return EXIT_BY_CODE[error.code] ?? EXIT.failed;
}
