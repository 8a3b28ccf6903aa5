import type { SecretKey } from '../../../../store/ports/index.ts';

/** Asked for several times for each delivery, in a row: making it anew each time cost as much as hashing the body. */
let latest: SecretKey & { name: string } = {
  namespaceId: '',
  pluginId: '',
  event: '',
  instanceId: '',
  name: '["","","",""]',
};

/** One text for a webhook of one namespace and instance. JSON keeps the parts apart whatever characters they hold. */
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
