import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HEADERS, PLATFORM_CODES, type PlatformCode } from '../contracts/index.ts';
import { codeOf, errorBody, PlatformError } from '../kit/errors.ts';
import type { Random } from '../kit/random.ts';
import { saneId } from '../kit/trace.ts';
import { refuseUpgrade } from './raw-upgrade-error.ts';
import { protocolFault } from './request-line.ts';

const FAULTS: Record<string, [PlatformCode, string]> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'The request headers are larger than 16 KB.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'The request did not arrive in time.'],
};
const REASONS: Partial<Record<PlatformCode, string>> = {
  HEADERS_TOO_LARGE: 'Request Header Fields Too Large',
  REQUEST_TIMEOUT: 'Request Timeout',
};

/** Answers what never became a request (bad framing, oversize headers) in the error shape, then closes: its framing cannot be trusted. */
export function createClientErrorAnswer(random: Random) {
  return (error: Error, socket: Socket): void => answerClientError(error, socket, random.uuid());
}

function answerClientError(error: Error, socket: Socket, requestId: string): void {
  const code = codeOf(error) ?? '';
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // Once an answer has begun, ours would land in the middle of it. What is written of it leaves: a refusal of framing that
  // the parser gives up on right after the head would never arrive otherwise.
  const { _httpMessage } = socket as { _httpMessage?: { _headerSent: boolean } };
  if (_httpMessage?._headerSent) {
    socket.destroySoon();
    return;
  }
  const [name, message] = FAULTS[code] ?? ['VALIDATION_ERROR', 'This is not a well-formed HTTP/1.1 request.'];
  const body = JSON.stringify(errorBody(new PlatformError(name, message)));
  const reason = REASONS[name] ?? 'Bad Request';
  socket.end(
    `HTTP/1.1 ${PLATFORM_CODES[name]} ${reason}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${HEADERS.requestId}: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
  );
}

/** `CONNECT` in our shape; Node would hang up without a word. */
export function refuseTunnels(server: Server, random: Random): void {
  const error = new PlatformError(
    'NOT_IMPLEMENTED',
    "This is no forward proxy: CONNECT is not done here; take this address out of the client's proxy settings.",
  );
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    const requestId = saneId(request.headers[HEADERS.requestId], random);
    refuseUpgrade(socket, protocolFault(request) ?? error, requestId);
  });
}
