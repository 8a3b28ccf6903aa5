import type { PlatformConfig } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors.ts';
import { ownValue } from '../../kit/own-value.ts';
import type { LoadedPlugin, PluginDescriber, PluginFault } from '../../plugins/index.ts';

/** What the plugin's own schema says of its entry under `pluginConfig`. */
export async function configFaults(
  { id, version, root, manifest }: LoadedPlugin,
  settings: PlatformConfig['pluginConfig'],
  describer: PluginDescriber,
): Promise<PluginFault[]> {
  const where = `pluginConfig["${id}"]`;
  const fault = (path: string, message: string): PluginFault => ({
    code: 'VALIDATION_ERROR',
    path: 'configSchema',
    message: `${path === '' ? where : `${where}.${path}`} of svc.config.json: ${message}`,
  });
  try {
    const found = await describer.config(
      { id, version, root },
      manifest.configSchema!,
      ownValue(settings, id) ?? {},
    );
    return found.map(({ path, message }) => fault(path, message));
  } catch (error) {
    return [fault('', `cannot be checked: ${messageOf(error)}`)];
  }
}
