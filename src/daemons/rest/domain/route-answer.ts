import type { CommandResult, RouteDecl } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';

/**
 * Response of a plugin route. `undeclared` is set if the manifest does not list the error code. Undeclared error codes
 * are logged.
 */
export interface RouteAnswer {
  status: number;
  body: unknown;
  undeclared?: boolean;
}

/** Converts a handler's result to a response. @spec Plugin routes 3, 4 */
export function answerTo(
  { exitCode, result, error }: CommandResult,
  errors: RouteDecl['errors'],
): RouteAnswer {
  if (exitCode === 0) return { status: 200, body: result ?? null };
  const code = error?.code ?? 'EXECUTION_ERROR';
  const declared = errors.find((entry) => entry.code === code);
  const message = error?.message ?? `The handler ended with exit code ${exitCode}.`;
  return {
    status: declared?.http ?? 500,
    body: { error: { code, message, details: error?.details ?? {} } },
    ...(declared ? {} : { undeclared: true }),
  };
}

/**
 * Returns the error for a handler that failed without a result. The text of an exception is hidden, because the text
 * can contain confidential data. Errors of the platform are returned unchanged. @spec Plugin routes 2, 5, 6, 7
 */
export function failureFor(thrown: unknown): unknown {
  if (!(thrown instanceof PlatformError) || thrown.code !== 'EXECUTION_ERROR') return thrown;
  return new PlatformError(
    'EXECUTION_ERROR',
    'The handler of this route failed; the log has the details under this request id.',
    { cause: thrown },
  );
}
