import { z } from 'zod';
import { type PluginDetail, PluginId, planPlugin, updatePlugin } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { confirmPlan, INSTALL_TIMEOUT_MS } from './install-plan.ts';
import { pluginText } from './show.ts';

/** @spec docs/mcp-servers.md "Changed tools" */
export const acceptMcp = defineCommand({
  name: 'plugins accept-mcp',
  summary: 'Show how the tools of an MCP server changed, and accept them',
  example: 'svc plugins accept-mcp everything',
  args: z.object({
    plugin: PluginId.describe('plugin id'),
    update: z.boolean().default(false).describe('also fetch the package anew, by its version or range'),
  }),
  async run({ plugin: pluginId, update }, context) {
    const options = { timeoutMs: INSTALL_TIMEOUT_MS };
    const keepCode = !update;
    const plan = await context.client.call(planPlugin, { body: { pluginId, keepCode } }, options);
    if (keepCode && plan.changes.length === 0) {
      context.ui.note('The tools are as approved; nothing was changed.');
      return ok({ pluginId, accepted: false, plugin: null });
    }
    await confirmPlan(plan, context);
    const body = { keepCode, manifestDigest: plan.manifestDigest };
    const plugin = await context.client.call(updatePlugin, { params: { pluginId }, body }, options);
    return ok({ pluginId, accepted: true, plugin });
  },
  text: ({ pluginId, plugin }: Accepted, style: Style) =>
    plugin ? pluginText(plugin, style) : `${pluginId}: unchanged`,
});

interface Accepted {
  pluginId: string;
  accepted: boolean;
  plugin: PluginDetail | null;
}
