import type { SecretKey } from '../../../../../store/ports/index.ts';
import type { ListenAddress } from '../../../../listen-address.ts';
import { deliveryPath } from './delivery-path.ts';

/**
 * Returns the URL to which a sender delivers. With `namespaceInUrl`, the URL contains the namespace as a query
 * parameter.
 */
export type WebhookUrl = (key: SecretKey, namespaceInUrl: boolean) => string;

/**
 * Creates a function that builds webhook URLs. Without `publicUrl`, the URLs contain `localhost`, which only senders on
 * this machine can reach.
 */
export function createWebhookUrl(publicUrl: string | null, address: ListenAddress): WebhookUrl {
  return ({ pluginId, event, instanceId, namespaceId }, namespaceInUrl) => {
    const base = (publicUrl ?? `http://localhost:${address.port}`).replace(/\/+$/, '');
    const path = deliveryPath({ pluginId, event, instanceId });
    return `${base}${path}${namespaceInUrl ? `?namespace=${encodeURIComponent(namespaceId)}` : ''}`;
  };
}
