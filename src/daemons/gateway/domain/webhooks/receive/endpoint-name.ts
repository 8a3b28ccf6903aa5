import { type SecretKey, secretFeedKey } from '../../../../../store/ports/index.ts';

/**
 * Cache of the latest name. Each delivery needs the name several times, and building the name takes as long as hashing
 * the body.
 */
let latest: SecretKey & { name: string } = {
  namespaceId: '',
  pluginId: '',
  event: '',
  instanceId: '',
  name: '["","","",""]',
};

/**
 * Returns the name of a webhook, unique across namespaces and instances. The change feed uses this name as the key of
 * the webhook's secret.
 */
export function endpointName({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  const isLatest =
    latest.namespaceId === namespaceId &&
    latest.pluginId === pluginId &&
    latest.event === event &&
    latest.instanceId === instanceId;
  if (!isLatest) {
    const name = secretFeedKey({ namespaceId, pluginId, event, instanceId });
    latest = { namespaceId, pluginId, event, instanceId, name };
  }
  return latest.name;
}

/** Formats plugin, event and instance of a webhook for messages. */
export function describeEndpoint({ pluginId, event, instanceId }: Omit<SecretKey, 'namespaceId'>): string {
  return `${pluginId} ${event}${instanceId === '' ? '' : ` (instance ${JSON.stringify(instanceId)})`}`;
}
