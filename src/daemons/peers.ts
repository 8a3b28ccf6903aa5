import type { ServiceName } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';

/** Where the other daemons are. The supervisor tells, and tells again when one moved. */
export interface Peers {
  /** Throws UPSTREAM_UNAVAILABLE while the daemon is not known. */
  urlOf(name: ServiceName): string;
  set(urls: Partial<Record<ServiceName, string>>): void;
  /** All that are known. */
  known(): Partial<Record<ServiceName, string>>;
  /** Called with what `set` is told. */
  onSet(listener: (urls: Partial<Record<ServiceName, string>>) => void): void;
}

export function createPeers(initial: Partial<Record<ServiceName, string>> = {}): Peers {
  const known = new Map(Object.entries(initial));
  const listeners: Array<(urls: Partial<Record<ServiceName, string>>) => void> = [];
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
      for (const listener of listeners) listener(urls);
    },
    known: () => Object.fromEntries(known),
    onSet: (listener) => void listeners.push(listener),
  };
}
