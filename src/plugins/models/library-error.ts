import { APIConnectionError, APIError } from 'openai';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import { connectionFailure, RemoteFailure, shownText, statusFailure } from './remote-error.ts';

/** Classifies an error of the OpenAI library, the network or the response parser. `now` is in epoch ms. */
export function failureOf(error: unknown, now: number): PlatformError | RemoteFailure {
  if (error instanceof PlatformError || error instanceof RemoteFailure) return error;
  if (error instanceof SyntaxError)
    return new RemoteFailure('malformed', `its response is not JSON: ${shownText(messageOf(error))}`);
  if (error instanceof APIConnectionError) return connectionFailure(error);
  if (!(error instanceof APIError)) return connectionFailure(error);
  const message = endpointMessage(error.error);
  if (error.status === undefined)
    return new RemoteFailure('server', `it reported an error in its stream: ${shownText(message)}`);
  return statusFailure(error.status, message, error.headers?.get('retry-after') ?? null, now);
}

function endpointMessage(error: unknown): string {
  if (typeof error === 'string') return error;
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' ? message : '';
}
