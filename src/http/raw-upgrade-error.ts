import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { HEADERS } from '../contracts/index.ts';
import { errorBody, type PlatformError } from '../kit/errors/errors.ts';

/** Refuses an upgrade with an error body and closes the socket. Node provides no response object for upgrades. */
export function refuseUpgrade(socket: Duplex, error: PlatformError, requestId: string): void {
  if (!socket.writable) return;
  const body = JSON.stringify(errorBody(error));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    [HEADERS.requestId]: requestId,
    ...error.headers,
    connection: error.headers.upgrade === undefined ? 'close' : 'close, upgrade',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}\r\n${lines.join('')}\r\n${body}`);
}
