import type { SecretKey } from '../../../../../store/ports/index.ts';
import type { ListenAddress } from '../../../../listen-address.ts';
import { deliveryPath } from './delivery-path.ts';

/** Builds the URL to which a sender delivers. */
export type WebhookUrl = (key: SecretKey, namespaceInUrl: boolean) => string;

/** Without a public URL, senders on this machine deliver to the port that the gateway listens on. */
export function createWebhookUrl(publicUrl: string | null, address: ListenAddress): WebhookUrl {
  return ({ pluginId, event, instanceId, namespaceId }, namespaceInUrl) => {
    const base = (publicUrl ?? `http://localhost:${address.port}`).replace(/\/+$/, '');
    const path = deliveryPath({ pluginId, event, instanceId });
    return `${base}${path}${namespaceInUrl ? `?namespace=${encodeURIComponent(namespaceId)}` : ''}`;
  };
}
