import { PROFILES_KEY } from '../../contracts/index.ts';
import type { LoadedConfig } from '../config.ts';
import { envOverlay } from './env.ts';
import { readConfigText } from './find.ts';
import { hasPath, isObject } from './merge.ts';
import { parseConfigText } from './parse.ts';

/** Where a value comes from: `environment` (`.env` included), `profile <name>`, `file`, or `default`. */
export type ConfigOrigin = (path: readonly PropertyKey[]) => string;

/** Tells the origin of each value of a configuration that was just loaded; in the order in which they win. */
export function configOrigins({ configFile, env, profile }: LoadedConfig): ConfigOrigin {
  const written = configFile ? parseConfigText(readConfigText(configFile), configFile) : {};
  const profiles = isObject(written) && isObject(written[PROFILES_KEY]) ? written[PROFILES_KEY] : {};
  const layers = [
    ['environment', envOverlay(env).overlay],
    [`profile ${profile}`, profiles[profile]],
    ['file', written],
  ] as const;
  return (path) => layers.find(([, layer]) => hasPath(layer, path))?.[0] ?? 'default';
}
