import type { PlatformConfig } from '../contracts/index.ts';
import { ownValue } from '../kit/data/own-value.ts';

/** Returns the name of the backend on which a plugin runs. */
export function backendNameOf(
  { default: fallback, plugins }: PlatformConfig['execution'],
  pluginId: string,
): PlatformConfig['execution']['default'] {
  return ownValue(plugins, pluginId)?.backend ?? fallback;
}
