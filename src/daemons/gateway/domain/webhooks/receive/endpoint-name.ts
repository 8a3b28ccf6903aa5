import { type SecretKey, secretFeedKey } from '../../../../../store/ports/index.ts';

/**
 * Cache of the latest name. A name is needed several times per delivery, and building it takes as long as hashing the
 * body.
 */
let latest: SecretKey & { name: string } = {
  namespaceId: '',
  pluginId: '',
  event: '',
  instanceId: '',
  name: '["","","",""]',
};

/**
 * Returns a webhook name that is unique across namespaces and instances. The change feed identifies the webhook's
 * secret by this name.
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

/** Describes a webhook in messages by plugin, event and instance. */
export function describeEndpoint({ pluginId, event, instanceId }: Omit<SecretKey, 'namespaceId'>): string {
  return `${pluginId} ${event}${instanceId === '' ? '' : ` (instance ${JSON.stringify(instanceId)})`}`;
}
