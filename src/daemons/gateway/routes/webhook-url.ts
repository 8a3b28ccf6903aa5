import { deliveryPathFault } from '../../../http/index.ts';
import { createBoundedCache } from '../../../kit/bounded-cache.ts';

/** What the URL of a delivery says. */
export interface DeliveryUrl {
  pluginId: string;
  event: string;
  instanceId: string | undefined;
  namespaceInUrl: string | undefined;
}

export const DELIVERY_PREFIX = '/webhooks/';
const REMEMBERED = 1000;
/** Longer ones are read anew each time: a stranger may make them up. */
const LONGEST_REMEMBERED = 512;
/** As the router's limit for one part of a path. */
const LONGEST_PART = 2048;

/**
 * Reads `/webhooks/<plugin>/<event>[/<instance>][?namespace=…]`. Senders have one URL each, so it is looked up before it
 * is taken apart. Undefined for whatever has to be read with more care, which the router has.
 */
export function createDeliveryUrls(): (url: string) => DeliveryUrl | undefined {
  const known = createBoundedCache<DeliveryUrl>(REMEMBERED);
  return (url) => {
    const found = known.get(url);
    if (found) return found;
    const read = readUrl(url);
    if (read && url.length <= LONGEST_REMEMBERED) known.set(url, read);
    return read;
  };
}

function readUrl(url: string): DeliveryUrl | undefined {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  if (!path.startsWith(DELIVERY_PREFIX) || path.includes(';') || deliveryPathFault(path)) return undefined;
  const parts = path.slice(DELIVERY_PREFIX.length).split('/');
  if (parts.length < 2 || parts.length > 3 || parts.some((part) => part === '' || part.length > LONGEST_PART))
    return undefined;
  try {
    const [pluginId, event, instanceId] = parts.map(decodeURIComponent) as [string, string, string?];
    return {
      pluginId,
      event,
      instanceId,
      namespaceInUrl: mark === -1 ? undefined : namespaceOf(url.slice(mark + 1)),
    };
  } catch {
    return undefined;
  }
}

/** Given twice, it is none. */
function namespaceOf(query: string): string | undefined {
  const named = new URLSearchParams(query).getAll('namespace');
  return named.length === 1 ? named[0] : undefined;
}
