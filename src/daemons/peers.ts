import type { ServiceName } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';

/** Where the other daemons are. The supervisor tells, and tells again when one moved. */
export interface Peers {
  /** Throws UPSTREAM_UNAVAILABLE while the daemon is not known. */
  urlOf(name: ServiceName): string;
  set(urls: Partial<Record<ServiceName, string>>): void;
}

export function createPeers(initial: Partial<Record<ServiceName, string>> = {}): Peers {
  const known = new Map(Object.entries(initial));
  return {
    urlOf(name) {
      const url = known.get(name);
      if (!url)
        throw new PlatformError(
          'UPSTREAM_UNAVAILABLE',
          `The ${name} service is not running; \`svc status\` shows why.`,
        );
      return url;
    },
    set(urls) {
      for (const [name, url] of Object.entries(urls)) known.set(name, url);
    },
  };
}
