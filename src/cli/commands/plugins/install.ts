import { z } from 'zod';
import { installPlugin, type PluginPlan, planPlugin } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { absoluteSource, confirmPlan, INSTALL_TIMEOUT_MS, runManifestFlag } from './install-plan.ts';
import { pluginText } from './show.ts';

/** @spec REST API: marketplace */
export const install = defineCommand({
  name: 'plugins install',
  summary: 'Install a plugin from npm, an archive, a folder or git',
  example: 'svc plugins install @acme/orders@^1.2.0',
  args: z.object({
    source: z.string().min(1).describe('npm name and range, archive, folder or git URL'),
    runManifest: runManifestFlag,
  }),
  async run({ source: given, runManifest }, context) {
    const source = absoluteSource(given, context);
    const options = { timeoutMs: INSTALL_TIMEOUT_MS };
    context.ui.note(`Inspecting ${source} …`);
    const plan = await context.client.call(planPlugin, { body: { source, runManifest } }, options);
    if (plan.installed !== null) throw alreadyInstalled(plan);
    await confirmPlan(plan, context);
    const body = { source, runManifest, manifestDigest: plan.manifestDigest };
    return ok(await context.client.call(installPlugin, { body }, options));
  },
  text: pluginText,
});

function alreadyInstalled({ id, installed, source }: PluginPlan): PlatformError {
  return new PlatformError('PLUGIN_CONFLICT', `Plugin ${id} is already installed in version ${installed}.`, {
    details: { pluginId: id, hint: `svc plugins update ${id} ${source}` },
  });
}
