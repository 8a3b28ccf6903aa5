import { z } from 'zod';
import { enablePlugin, PluginId, type PluginRecord } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Plugin enabled flag */
export const enable = defineCommand({
  name: 'plugins enable',
  summary: 'Enable a plugin',
  example: 'svc plugins enable github',
  args: z.object({ plugin: PluginId.describe('plugin id') }),
  run: async ({ plugin }, { client }) =>
    ok(await client.call(enablePlugin, { params: { pluginId: plugin } })),
  text: ({ id, status, faults }: PluginRecord) =>
    status === 'broken'
      ? `${id} is enabled, but broken: ${faults[0]?.message ?? 'see svc plugins show'}`
      : `${id} is enabled.`,
});
