import { isLoopbackHost } from '../kit/config/loopback.ts';
import { PlatformError } from '../kit/errors/errors.ts';

/** Throws FORBIDDEN for an unexpected `Host` header. */
export type CheckHost = (host: string | undefined) => void;

export interface HostCheckOptions {
  /** Address on which the service listens. */
  listenHost: string;
  /** Additional accepted host names, with or without a port, such as `svc.example.com`. */
  allowedHosts: readonly string[];
}

/**
 * Returns a check of the `Host` header against DNS rebinding, or undefined. No check is needed if the service does not
 * listen on a loopback address.
 */
export function createHostCheck({ listenHost, allowedHosts }: HostCheckOptions): CheckHost | undefined {
  if (!isLoopbackHost(listenHost)) return undefined;
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  let lastGood: string | undefined;
  return (host) => {
    // A missing `Host` header is accepted, because HTTP/1.0 clients can omit the header. Browsers always send the
    // header.
    if (host === undefined || host === lastGood) return;
    const full = host.toLowerCase();
    const name = full.replace(/:\d*$/, '');
    if (isLoopbackHost(name) || allowed.has(name) || allowed.has(full)) {
      lastGood = host;
      return;
    }
    throw new PlatformError(
      'FORBIDDEN',
      `This service listens on loopback and does not accept the host name "${host.slice(0, 100)}". To allow it, add it to gateway.allowedHosts.`,
    );
  };
}
