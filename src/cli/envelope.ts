import type { CommandResult, Envelope } from '../contracts/index.ts';
import { toPlatformError } from '../kit/errors/errors.ts';

/** Returns the JSON document that `--json` prints after a success. @spec Errors: Shapes */

export function successEnvelope({ result, meta }: CommandResult): Envelope {
  return { ok: true, ...(result === undefined ? {} : { result }), ...(meta ? { meta } : {}) };
}

export function failureEnvelope(thrown: unknown): Envelope {
  const { code, message, details } = toPlatformError(thrown);
  return { ok: false, error: { code, message, details }, result: null, meta: {} };
}

/** Returns the envelope for a failure that a command reported in its result instead of throwing an error. */
export function declaredFailure({ exitCode, error, result, meta }: CommandResult): Envelope {
  const {
    code = 'EXECUTION_ERROR',
    message = `The command failed with exit code ${exitCode}.`,
    details = {},
  } = error ?? {};
  return { ok: false, error: { code, message, details }, result: result ?? null, meta: meta ?? {} };
}
