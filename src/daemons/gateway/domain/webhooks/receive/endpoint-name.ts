import type { SecretKey } from '../../../../../store/ports/index.ts';

/**
 * Cache of one: the name is needed several times per delivery, and building it costs as much as hashing the
 * body.
 */
let latest: SecretKey & { name: string } = {
  namespaceId: '',
  pluginId: '',
  event: '',
  instanceId: '',
  name: '["","","",""]',
};

/** Name of a webhook of one namespace and instance. JSON, because any separator could be part of a field. */
export function endpointName({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  const isLatest =
    latest.namespaceId === namespaceId &&
    latest.pluginId === pluginId &&
    latest.event === event &&
    latest.instanceId === instanceId;
  if (!isLatest) {
    const name = JSON.stringify([namespaceId, pluginId, event, instanceId]);
    latest = { namespaceId, pluginId, event, instanceId, name };
  }
  return latest.name;
}

/** The endpoint in messages: plugin, event and instance. */
export function describeEndpoint({ pluginId, event, instanceId }: Omit<SecretKey, 'namespaceId'>): string {
  return `${pluginId} ${event}${instanceId === '' ? '' : ` (instance ${JSON.stringify(instanceId)})`}`;
}
