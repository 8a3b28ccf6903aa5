import { PROFILES_KEY } from '../../contracts/index.ts';
import type { LoadedConfig } from './config.ts';
import { envOverlay } from './env.ts';
import { readConfigText } from './find.ts';
import { hasPath, isObject } from './merge.ts';
import { parseConfigText } from './parse.ts';

/**
 * Returns the source of the config value at a path: `environment` (including `.env`), `profile <name>`, `file` or
 * `default`.
 */
export type ConfigOrigin = (path: readonly PropertyKey[]) => string;

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
