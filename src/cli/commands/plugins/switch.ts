import { z } from 'zod';
import { disablePlugin, enablePlugin, PluginId, type PluginRecord } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

const args = z.object({ plugin: PluginId.describe("the plugin's id") });

/** @spec Plugin enabled flag */
export const enable = defineCommand({
  name: 'plugins enable',
  summary: 'Switch a plugin on again',
  example: 'svc plugins enable github',
  args,
  run: async ({ plugin }, { client }) =>
    ok(await client.call(enablePlugin, { params: { pluginId: plugin } })),
  text: ({ id, status, faults }: PluginRecord) =>
    status === 'broken'
      ? `${id} is enabled, but broken: ${faults[0]?.message ?? 'svc plugins show tells why'}`
      : `${id} is enabled.`,
});

/** @spec Plugin enabled flag */
export const disable = defineCommand({
  name: 'plugins disable',
  summary: 'Switch a plugin off; what it runs now finishes',
  example: 'svc plugins disable github',
  args,
  run: async ({ plugin }, { client }) =>
    ok(await client.call(disablePlugin, { params: { pluginId: plugin } })),
  text: ({ id }: PluginRecord) => `${id} is disabled; what it runs now finishes.`,
});
