import { resolve } from 'node:path';
import { z } from 'zod';
import { linkPlugin, PluginId, unlinkPlugin } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pluginText } from './show.ts';

/** @spec docs/plugins.md "Developing" */
export const link = defineCommand({
  name: 'plugins link',
  summary: 'Use a folder under development as a plugin, where it is',
  example: 'svc plugins link ./my-plugin',
  args: z.object({ folder: z.string().min(1).describe("the plugin's folder") }),
  run: async ({ folder }, { client, cwd }) =>
    ok(await client.call(linkPlugin, { body: { folder: resolve(cwd, folder) } })),
  text: pluginText,
});

/** @spec docs/plugins.md "Developing" */
export const unlink = defineCommand({
  name: 'plugins unlink',
  summary: 'Stop using a linked folder; it stays as it is',
  example: 'svc plugins unlink my-plugin',
  args: z.object({ plugin: PluginId.describe("the plugin's id") }),
  run: async ({ plugin }, { client }) =>
    ok(await client.call(unlinkPlugin, { params: { pluginId: plugin } })),
  text: () => 'Unlinked; the folder stays as it is.',
});
