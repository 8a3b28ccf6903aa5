import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HEADERS, PLATFORM_CODES, type PlatformCode } from '../contracts/index.ts';
import { codeOf, errorBody, PlatformError } from '../kit/errors/errors.ts';
import { hasBegunResponse, pendingResponse } from '../kit/process/node-internals.ts';
import type { Random } from '../kit/security/random.ts';
import { saneId } from '../kit/telemetry/trace.ts';
import { refuseUpgrade } from './raw-upgrade-error.ts';
import { protocolFault } from './request-line.ts';
import { afterPendingResponses } from './response-order.ts';

const FAULTS: Record<string, [PlatformCode, string]> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'The request headers are larger than 16 KB.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'The request did not arrive in time.'],
};
const REASONS: Partial<Record<PlatformCode, string>> = {
  HEADERS_TOO_LARGE: 'Request Header Fields Too Large',
  REQUEST_TIMEOUT: 'Request Timeout',
};

/**
 * Returns a handler for malformed requests, such as requests with oversized headers. The handler sends an error body
 * and closes the connection.
 */
export function createClientErrorAnswer(random: Random) {
  const refused = new WeakSet<Socket>();
  return (error: Error, socket: Socket): void => {
    // Only the first error is answered. After the first error, Node emits another `clientError` for each chunk that
    // arrives.
    if (refused.has(socket)) return;
    const answer = (): void => answerClientError(error, socket, random.uuid());
    if (isBehindAnother(socket)) {
      refused.add(socket);
      afterPendingResponses(socket, answer);
    } else answer();
  };
}

/**
 * Returns whether an earlier request on this connection waits for its response. An incomplete request does not count,
 * because the incomplete request is the malformed request.
 */
function isBehindAnother(socket: Socket): boolean {
  const pending = pendingResponse(socket);
  return pending?.req.complete === true && !hasBegunResponse(socket) && socket.writable;
}

function answerClientError(error: Error, socket: Socket, requestId: string): void {
  const code = codeOf(error) ?? '';
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // An error response would corrupt a response that has begun. `destroySoon()` closes the connection after sending all
  // bytes that were already written.
  if (hasBegunResponse(socket)) {
    socket.destroySoon();
    return;
  }
  const [name, message] = FAULTS[code] ?? ['VALIDATION_ERROR', 'The request is not well-formed HTTP/1.1.'];
  const body = JSON.stringify(errorBody(new PlatformError(name, message)));
  const reason = REASONS[name] ?? 'Bad Request';
  socket.end(
    `HTTP/1.1 ${PLATFORM_CODES[name]} ${reason}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${HEADERS.requestId}: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
  );
}

/** Answers `CONNECT` requests with an error body, because Node would close the connection without an answer. */
export function refuseTunnels(server: Server, random: Random): void {
  const error = new PlatformError(
    'NOT_IMPLEMENTED',
    "CONNECT is not supported, because this is not a forward proxy. Remove this address from the client's proxy settings.",
  );
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    const requestId = saneId(request.headers[HEADERS.requestId], random);
    afterPendingResponses(socket, () => refuseUpgrade(socket, protocolFault(request) ?? error, requestId));
  });
}
