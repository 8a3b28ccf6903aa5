import { isIPv4 } from 'node:net';

/** Returns true for `localhost` and its subdomains, 127.0.0.0/8, and `::1` with or without brackets. */
export function isLoopbackHost(host: string): boolean {
  if (host === 'localhost' || host === '::1' || host === '[::1]' || host.endsWith('.localhost')) return true;
  return host.startsWith('127.') && isIPv4(host);
}
