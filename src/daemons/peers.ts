import type { ServiceName } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';

/** Addresses of the other services, which the supervisor sends at the start and after each change. */
export interface Peers {
  /** Returns the URL of a service. Throws UPSTREAM_UNAVAILABLE until the supervisor has sent the address. */
  urlOf(name: ServiceName): string;
  set(urls: Partial<Record<ServiceName, string>>): void;
  known(): Partial<Record<ServiceName, string>>;
}

export function createPeers(initial: Partial<Record<ServiceName, string>> = {}): Peers {
  const known = new Map(Object.entries(initial));
  return {
    urlOf(name) {
      const url = known.get(name);
      if (!url)
        throw new PlatformError(
          'UPSTREAM_UNAVAILABLE',
          `The ${name} service is not running; see \`svc status\` for the cause.`,
        );
      return url;
    },
    set(urls) {
      for (const [name, url] of Object.entries(urls)) known.set(name, url);
    },
    known: () => Object.fromEntries(known),
  };
}
