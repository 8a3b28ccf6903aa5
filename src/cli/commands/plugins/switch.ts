import { z } from 'zod';
import { disablePlugin, enablePlugin, PluginId, type PluginRecord } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

const args = z.object({ plugin: PluginId.describe('plugin id') });

/** @spec Plugin enabled flag */
export const enable = defineCommand({
  name: 'plugins enable',
  summary: 'Enable a plugin',
  example: 'svc plugins enable github',
  args,
  run: async ({ plugin }, { client }) =>
    ok(await client.call(enablePlugin, { params: { pluginId: plugin } })),
  text: ({ id, status, faults }: PluginRecord) =>
    status === 'broken'
      ? `${id} is enabled, but broken: ${faults[0]?.message ?? 'see svc plugins show'}`
      : `${id} is enabled.`,
});

/** @spec Plugin enabled flag */
export const disable = defineCommand({
  name: 'plugins disable',
  summary: 'Disable a plugin; running executions finish',
  example: 'svc plugins disable github',
  args,
  run: async ({ plugin }, { client }) =>
    ok(await client.call(disablePlugin, { params: { pluginId: plugin } })),
  text: ({ id }: PluginRecord) => `${id} is disabled. Running executions finish.`,
});
