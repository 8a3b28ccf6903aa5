import type { IncomingMessage } from 'node:http';
import { PlatformError } from '../kit/errors.ts';
import type { CheckHost } from './host-check.ts';
import { deliveryPathFault, pathFault, pathOf } from './request-path.ts';

/** Throws what is wrong with a request before anybody looks for a route: its path, its Host headers, the name it asks for. */
export function requireSound(request: IncomingMessage, checkHost: CheckHost | undefined): void {
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
