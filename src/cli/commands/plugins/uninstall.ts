import { z } from 'zod';
import { PluginId, uninstallPlugin } from '../../../contracts/index.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec REST API: marketplace */
export const uninstall = defineCommand({
  name: 'plugins uninstall',
  summary: 'Uninstall a plugin but keep its state',
  example: 'svc plugins uninstall @acme/orders',
  args: z.object({ plugin: PluginId.describe('plugin id') }),
  async run({ plugin }, context) {
    if (!(await confirm(context, `Uninstall ${plugin}?`))) throw new CancelledError();
    return ok(await context.client.call(uninstallPlugin, { params: { pluginId: plugin } }));
  },
  text: () => 'Uninstalled. Its state is kept.',
});
