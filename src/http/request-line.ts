import { type IncomingMessage, METHODS } from 'node:http';
import { PlatformError } from '../kit/errors.ts';
import type { CheckHost } from './host-check.ts';
import { deliveryPathFault, pathFault, pathOf } from './request-path.ts';

/** Throws VALIDATION_ERROR or FORBIDDEN for a request that is not to be routed: its protocol, framing, path or Host are wrong. */
export function requireSound(request: IncomingMessage, checkHost: CheckHost | undefined): void {
  const fault = protocolFault(request);
  if (fault) throw fault;
  requireHost(request);
  requirePlainPath(request.url!);
  if (!isDelivery(request.url!)) checkHost?.(request.headers.host);
}

/** HTTP/1.1 wants one of every client; of two, who knows which one a proxy before us looked at (RFC 9112 3.2). */
function requireHost({ headers, rawHeaders, httpVersionMinor }: IncomingMessage): void {
  if (headers.host === undefined) {
    if (httpVersionMinor === 0) return;
    throw new PlatformError('VALIDATION_ERROR', 'The request has no Host header.');
  }
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') seen++;
  }
  if (seen > 1) throw new PlatformError('VALIDATION_ERROR', 'The request has more than one Host header.');
}

function requirePlainPath(url: string): void {
  const fault = isDelivery(url) ? deliveryPathFault(pathOf(url)) : pathFault(pathOf(url));
  if (fault) throw new PlatformError('VALIDATION_ERROR', `${fault} Send the path in its plain form.`);
}

/** Deliveries prove themselves by a secret and come through tunnels under any name. */
function isDelivery(url: string): boolean {
  return url.startsWith('/webhooks/');
}

const HTTP_METHODS = new Set<string | undefined>(METHODS);
/** A connection ends with such a request: the bytes behind it may be read in another way by the sender. */
const CLOSE = { headers: { connection: 'close' } };

/**
 * The error for a request that is not HTTP/1.0 or HTTP/1.1, or undefined. Node's parser also takes HTTP/0.9, HTTP/2.0,
 * RTSP and ICE (docs/decisions/0020), and chunks in HTTP/1.0, which older proxies do not know (RFC 9112 6.1).
 */
export function protocolFault(request: IncomingMessage): PlatformError | undefined {
  const { method, httpVersionMajor, httpVersionMinor, headers } = request;
  if (httpVersionMajor !== 1) {
    return new PlatformError(
      'VALIDATION_ERROR',
      'The request line does not end with HTTP/1.1 or HTTP/1.0; send the request as HTTP/1.1.',
      CLOSE,
    );
  }
  const isOtherProtocol = !HTTP_METHODS.has(method) || (httpVersionMinor === 0 && method === 'SOURCE');
  if (isOtherProtocol && method !== 'CONNECT') {
    return new PlatformError(
      'VALIDATION_ERROR',
      `The request line "${method}" is of another protocol; send the request as HTTP/1.1.`,
      CLOSE,
    );
  }
  if (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined) {
    return new PlatformError(
      'VALIDATION_ERROR',
      'HTTP/1.0 has no Transfer-Encoding; send a Content-Length, or use HTTP/1.1.',
      CLOSE,
    );
  }
  return undefined;
}
