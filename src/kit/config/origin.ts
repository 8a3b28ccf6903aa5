import { PROFILES_KEY } from '../../contracts/index.ts';
import type { LoadedConfig } from './config.ts';
import { envOverlay } from './env.ts';
import { readConfigText } from './find.ts';
import { hasPath, isObject } from './merge.ts';
import { parseConfigText } from './parse.ts';

/** Source of a config value: `environment` (`.env` included), `profile <name>`, `file`, or `default`. */
export type ConfigOrigin = (path: readonly PropertyKey[]) => string;

/** Returns the origin of each value of a loaded configuration. */
export function configOrigins({ configFile, env, profile }: LoadedConfig): ConfigOrigin {
  const fileContent = configFile ? parseConfigText(readConfigText(configFile), configFile) : {};
  const profiles =
    isObject(fileContent) && isObject(fileContent[PROFILES_KEY]) ? fileContent[PROFILES_KEY] : {};
  const layers = [
    ['environment', envOverlay(env).overlay],
    [`profile ${profile}`, profiles[profile]],
    ['file', fileContent],
  ] as const;
  return (path) => layers.find(([, layer]) => hasPath(layer, path))?.[0] ?? 'default';
}
