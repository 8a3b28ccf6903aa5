import { type IncomingMessage, METHODS } from 'node:http';
import { PlatformError } from '../kit/errors/errors.ts';
import type { CheckHost } from './host-check.ts';
import { deliveryPathFault, pathFault, pathOf } from './request-path.ts';

/**
 * Throws VALIDATION_ERROR for a malformed path or `Host` header. Throws FORBIDDEN for a host that is not allowed,
 * except for webhook deliveries.
 */
export function requireValidRequest(request: IncomingMessage, checkHost: CheckHost | undefined): void {
  requireHost(request);
  requireSafePath(request.url!);
  if (!isDelivery(request.url!)) checkHost?.(request.headers.host);
}

/**
 * Requires exactly one `Host` header in HTTP/1.1 (RFC 9112 3.2). With two `Host` headers, a proxy and this server could
 * use different values.
 */
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

function requireSafePath(url: string): void {
  const fault = isDelivery(url) ? deliveryPathFault(pathOf(url)) : pathFault(pathOf(url));
  if (fault) throw new PlatformError('VALIDATION_ERROR', `${fault} Send the path without it.`);
}

/**
 * Returns true for webhook deliveries. Deliveries authenticate with a secret and can arrive through a tunnel, so their
 * host name is not checked.
 */
export function isDelivery(url: string): boolean {
  return url.startsWith('/webhooks/') || url.startsWith('/in/');
}

const HTTP_METHODS = new Set<string | undefined>(METHODS);
/**
 * Error options that close the connection, because this server and the sender might disagree on the end of the request.
 */
const CLOSE = { headers: { connection: 'close' } };

/**
 * Returns an error for requests that are not valid HTTP/1.0 or HTTP/1.1. Node's parser also accepts other protocols
 * (docs/decisions/0020). Chunked HTTP/1.0 bodies are rejected too (RFC 9112 6.1).
 */
export function protocolFault(request: IncomingMessage): PlatformError | undefined {
  const { method, httpVersionMajor, httpVersionMinor, headers } = request;
  if (httpVersionMajor !== 1) {
    return new PlatformError(
      'VALIDATION_ERROR',
      'The request line does not end with HTTP/1.1 or HTTP/1.0. Send the request as HTTP/1.1.',
      CLOSE,
    );
  }
  const isOtherProtocol = !HTTP_METHODS.has(method) || (httpVersionMinor === 0 && method === 'SOURCE');
  if (isOtherProtocol && method !== 'CONNECT') {
    return new PlatformError(
      'VALIDATION_ERROR',
      `The method "${method}" belongs to another protocol. Send the request as HTTP/1.1.`,
      CLOSE,
    );
  }
  if (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined) {
    return new PlatformError(
      'VALIDATION_ERROR',
      'HTTP/1.0 has no Transfer-Encoding. Send a Content-Length, or use HTTP/1.1.',
      CLOSE,
    );
  }
  return undefined;
}
