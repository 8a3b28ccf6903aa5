import { z } from 'zod';
import { PluginId, unlinkPlugin } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec docs/plugins.md "Developing" */
export const unlink = defineCommand({
  name: 'plugins unlink',
  summary: 'Unlink a development folder but keep its files',
  example: 'svc plugins unlink my-plugin',
  args: z.object({ plugin: PluginId.describe('plugin id') }),
  run: async ({ plugin }, { client }) =>
    ok(await client.call(unlinkPlugin, { params: { pluginId: plugin } })),
  text: () => 'Unlinked. The folder is unchanged.',
});
