import { isIPv4 } from 'node:net';
import { PlatformError } from '../kit/errors.ts';

/** Throws FORBIDDEN for a `Host` that no client of ours would send. */
export type CheckHost = (host: string | undefined) => void;

export interface HostCheckOptions {
  /** The address the daemon listens on. */
  listenHost: string;
  /** Names beside those of this machine, with or without a port: `svc.example.com`. */
  allowedHosts: readonly string[];
}

/**
 * For a daemon that listens on loopback only. A browser page whose own name was pointed at 127.0.0.1 (DNS rebinding)
 * reaches it as same-origin, but cannot help sending that name. Undefined for a daemon on a real address, where any
 * name may be right.
 */
export function createHostCheck({ listenHost, allowedHosts }: HostCheckOptions): CheckHost | undefined {
  if (!isLoopbackHost(listenHost)) return undefined;
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  let lastGood: string | undefined;
  return (host) => {
    // HTTP/1.0 may leave it out; no browser does.
    if (host === undefined || host === lastGood) return;
    const full = host.toLowerCase();
    const name = full.replace(/:\d*$/, '');
    if (isLoopbackHost(name) || allowed.has(name) || allowed.has(full)) {
      lastGood = host;
      return;
    }
    throw new PlatformError(
      'FORBIDDEN',
      `This service listens on this machine only and does not answer to "${host.slice(0, 100)}"; add the name to gateway.allowedHosts if it is yours.`,
    );
  };
}

/** `localhost`, names below it, 127.0.0.0/8 and ::1, with or without brackets. */
export function isLoopbackHost(host: string): boolean {
  if (host === 'localhost' || host === '::1' || host === '[::1]' || host.endsWith('.localhost')) return true;
  return host.startsWith('127.') && isIPv4(host);
}
