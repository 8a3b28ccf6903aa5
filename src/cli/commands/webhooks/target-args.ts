import { EventName, InstanceId, PluginId } from '../../../contracts/index.ts';

export const targetArgs = {
  plugin: PluginId.describe('plugin id'),
  event: EventName.describe('event declared by the plugin'),
  instance: InstanceId.optional().describe("instance of a 'multi' webhook"),
};

/** Returns the part of a request body that identifies the webhook. */
export function targetBody({
  plugin,
  event,
  instance,
}: {
  plugin: PluginId;
  event: EventName;
  instance?: InstanceId | undefined;
}) {
  return { pluginId: plugin, event, ...(instance === undefined ? {} : { instanceId: instance }) };
}
