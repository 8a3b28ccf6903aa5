import { z } from 'zod';
import { installPlugin, type PluginPlan, planPlugin } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { absoluteSource, agree, INSTALL_TIMEOUT_MS, runManifestFlag } from './install-plan.ts';
import { pluginText } from './show.ts';

/** @spec REST API: marketplace */
export const install = defineCommand({
  name: 'plugins install',
  summary: 'Install a plugin: npm name and range, archive, folder or git address',
  example: 'svc plugins install @acme/orders@^1.2.0',
  args: z.object({
    source: z.string().min(1).describe('where it comes from'),
    runManifest: runManifestFlag,
  }),
  async run({ source: given, runManifest }, context) {
    const source = absoluteSource(given, context);
    const options = { timeoutMs: INSTALL_TIMEOUT_MS };
    context.ui.note(`Looking into ${source} …`);
    const plan = await context.client.call(planPlugin, { body: { source, runManifest } }, options);
    if (plan.installed !== null) throw thereAlready(plan);
    await agree(plan, context);
    const body = { source, runManifest, manifestDigest: plan.manifestDigest };
    return ok(await context.client.call(installPlugin, { body }, options));
  },
  text: pluginText,
});

function thereAlready({ id, installed, source }: PluginPlan): PlatformError {
  return new PlatformError('PLUGIN_CONFLICT', `The plugin ${id} is there already, in version ${installed}.`, {
    details: { pluginId: id, hint: `svc plugins update ${id} ${source}` },
  });
}
