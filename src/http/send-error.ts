import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS } from '../contracts/index.ts';
import { errorBody, type PlatformError } from '../kit/errors.ts';
import type { Logger } from '../kit/logger.ts';
import { toHttpError } from './error-body.ts';
import { sendRawError } from './raw-error.ts';
import { pathOf } from './request-path.ts';

/** What `sendRawError` sets itself. */
const RAW_HEADERS = new Set<string>([
  HEADERS.requestId,
  'x-content-type-options',
  'content-type',
  'content-length',
]);

/** Answers whatever was thrown on the way of a request in the error shape; a fault of ours is logged in full. */
export function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): void {
  const error = toHttpError(thrown);
  if (error.status >= 500) {
    logger.error(
      `${request.method} ${request.routeOptions.url ?? pathOf(request.url)} failed: ${error.message}`,
      {
        requestId: request.id,
        traceId: request.traceId,
        error: error.cause ?? error,
      },
    );
  }
  // Fastify stops reading a refused body; a connection with half a body in it cannot be used again.
  if (error.code === 'PAYLOAD_TOO_LARGE') reply.header('connection', 'close');
  if (request.raw.complete) {
    reply
      .code(error.status)
      .headers({ [HEADERS.requestId]: request.id, ...error.headers })
      .send(errorBody(error));
  } else sendUnread(error, request, reply);
}

/** As the client may be sending its body still, the framework must not end the exchange. */
function sendUnread(error: PlatformError, request: FastifyRequest, reply: FastifyReply): void {
  if (request.server.kit.draining) reply.header('connection', 'close');
  const set = Object.entries(reply.getHeaders());
  const extra = set.filter(([name]) => !RAW_HEADERS.has(name) && !Object.hasOwn(error.headers, name));
  reply.hijack();
  sendRawError(reply.raw, error, request.id, extra.flat().map(String));
}
