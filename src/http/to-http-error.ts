import type { FastifyError } from 'fastify';
import type { PlatformCode } from '../contracts/index.ts';
import { codeOf, PlatformError, toRemoteError } from '../kit/errors/errors.ts';

const TRANSPORT_FAULTS: Record<string, [PlatformCode, string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['PAYLOAD_TOO_LARGE', 'The request body exceeds the limit of this endpoint.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'Send the body as "Content-Type: application/json".',
  ],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['VALIDATION_ERROR', 'The body is empty. Send a JSON document.'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['VALIDATION_ERROR', 'The body is not valid JSON.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'VALIDATION_ERROR',
    'The length of the body does not match Content-Length.',
  ],
  FST_ERR_BAD_URL: ['VALIDATION_ERROR', 'The path has a malformed percent escape.'],
  FST_ERR_MAX_PARAM_LENGTH: ['NOT_FOUND', 'This path does not exist.'],
  FST_ERR_ASYNC_CONSTRAINT: ['VALIDATION_ERROR', 'The request cannot be routed.'],
};

/** Converts any value thrown while handling a request to a PlatformError. */
export function toHttpError(thrown: unknown): PlatformError {
  const known = TRANSPORT_FAULTS[codeOf(thrown) ?? ''];
  if (known) return new PlatformError(known[0], known[1], { cause: thrown });
  const status = (thrown as Partial<FastifyError>)?.statusCode;
  if (thrown instanceof SyntaxError && status === 400) {
    return new PlatformError('VALIDATION_ERROR', `The body is not valid JSON: ${thrown.message}`, {
      cause: thrown,
    });
  }
  return toRemoteError(thrown);
}
