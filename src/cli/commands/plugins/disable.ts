import { z } from 'zod';
import { disablePlugin, PluginId, type PluginRecord } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Plugin enabled flag */
export const disable = defineCommand({
  name: 'plugins disable',
  summary: 'Disable a plugin; running executions finish',
  example: 'svc plugins disable github',
  args: z.object({ plugin: PluginId.describe('plugin id') }),
  run: async ({ plugin }, { client }) =>
    ok(await client.call(disablePlugin, { params: { pluginId: plugin } })),
  text: ({ id }: PluginRecord) => `${id} is disabled. Running executions finish.`,
});
