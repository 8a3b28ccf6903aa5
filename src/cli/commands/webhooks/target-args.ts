import { EventName, InstanceId, PluginId } from '../../../contracts/index.ts';

/** What names one webhook on the command line. */
export const targetArgs = {
  plugin: PluginId.describe("the plugin's id"),
  event: EventName.describe('the event it declares'),
  instance: InstanceId.optional().describe("which instance of a 'multi' webhook"),
};

/** The same as the body of a call. */
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
