import type { ServiceName } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';

type Urls = Partial<Record<ServiceName, string>>;

/** Addresses of the other services. A service on this node takes precedence over the same service on other nodes. */
export interface Peers {
  /** Returns the URL of a service. Throws UPSTREAM_UNAVAILABLE while the address is unknown. */
  urlOf(name: ServiceName): string;
  /** Sets addresses of services on this node, which the supervisor sends at the start and after each change. */
  set(urls: Urls): void;
  /** Replaces the addresses of services on other nodes. */
  setElsewhere(urls: Partial<Record<ServiceName, readonly string[]>>): void;
  /** Returns one address of each known service. */
  known(): Urls;
}

/**
 * Services whose processes are interchangeable, so that calls take turns. Calls to other services go to the oldest
 * process, because the process that runs a workflow or holds a connection must answer.
 */
const BALANCED: ReadonlySet<ServiceName> = new Set(['rest', 'state']);

export function createPeers(initial: Urls = {}): Peers {
  const local = new Map(Object.entries(initial));
  let elsewhere: ReadonlyMap<string, readonly string[]> = new Map();
  let turn = 0;
  return {
    urlOf(name) {
      const url = local.get(name);
      if (url) return url;
      const others = elsewhere.get(name) ?? [];
      const next = others[BALANCED.has(name) ? turn++ % others.length : 0];
      if (!next)
        throw new PlatformError(
          'UPSTREAM_UNAVAILABLE',
          `The ${name} service is not running; see \`svc status\` for the cause.`,
        );
      return next;
    },
    set(urls) {
      for (const [name, url] of Object.entries(urls)) local.set(name, url);
    },
    setElsewhere(urls) {
      elsewhere = new Map(Object.entries(urls));
    },
    known() {
      const first = [...elsewhere].flatMap(([name, [url]]) => (url ? [[name, url] as const] : []));
      return { ...Object.fromEntries(first), ...Object.fromEntries(local) };
    },
  };
}
