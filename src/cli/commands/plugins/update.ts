import { z } from 'zod';
import { PluginId, planPlugin, updatePlugin } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { absoluteSource, confirmPlan, INSTALL_TIMEOUT_MS, runManifestFlag } from './install-plan.ts';
import { pluginText } from './show.ts';

/** @spec docs/plugins.md "Updating" */
export const update = defineCommand({
  name: 'plugins update',
  summary: 'Update an installed plugin after showing the changes',
  example: 'svc plugins update @acme/orders',
  args: z.object({
    plugin: PluginId.describe('plugin id'),
    source: z.string().min(1).optional().describe('new source; default: the installed one'),
    runManifest: runManifestFlag,
  }),
  positionals: ['source'],
  async run({ plugin: pluginId, source: given, runManifest }, context) {
    const source = given === undefined ? {} : { source: absoluteSource(given, context) };
    const options = { timeoutMs: INSTALL_TIMEOUT_MS };
    const plan = await context.client.call(
      planPlugin,
      { body: { pluginId, runManifest, ...source } },
      options,
    );
    await confirmPlan(plan, context);
    const body = { ...source, runManifest, manifestDigest: plan.manifestDigest };
    return ok(await context.client.call(updatePlugin, { params: { pluginId }, body }, options));
  },
  text: pluginText,
});
