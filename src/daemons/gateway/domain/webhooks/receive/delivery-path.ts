import type { SecretKey } from '../../../../../store/ports/index.ts';

/** Returns the URL path to which senders deliver. @spec Webhook delivery */
export function deliveryPath({ pluginId, event, instanceId }: Omit<SecretKey, 'namespaceId'>): string {
  const parts = [pluginId, event, ...(instanceId === '' ? [] : [instanceId])];
  return `/webhooks/${parts.map(encodeURIComponent).join('/')}`;
}
