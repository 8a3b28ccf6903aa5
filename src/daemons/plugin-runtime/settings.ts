import type { ManifestV3, PlatformConfig } from '../../contracts/index.ts';
import { ownValue } from '../../kit/data/own-value.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import {
  type LoadedPlugin,
  type PluginDescriber,
  type PluginFault,
  withDefaults,
} from '../../plugins/index.ts';

type Settings = PlatformConfig['pluginConfig'][string];

const settled = new WeakMap<ManifestV3, Settings>();

/**
 * Returns a handler's `ctx.config`, which contains the configured settings and the defaults of the plugin's
 * `configSchema`.
 */
export function settingsOf(manifest: ManifestV3, given: Settings | undefined): Settings {
  let settings = settled.get(manifest);
  if (!settings) {
    settings = withDefaults(manifest.configSchema, given ?? {}) as Settings;
    settled.set(manifest, settings);
  }
  return settings;
}

/** Validates the plugin's `pluginConfig` entry against the plugin's schema and returns the faults. */
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
      settingsOf(manifest, ownValue(settings, id)),
    );
    return found.map(({ path, message }) => fault(path, message));
  } catch (error) {
    return [fault('', `cannot be checked: ${messageOf(error)}`)];
  }
}
