import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Environment } from '../config/config.ts';

export function userHome(env: Environment): string {
  return env.HOME || homedir();
}

/** Returns the folder for per-user settings: `XDG_CONFIG_HOME`, or else `~/.config`. */
export function userConfigFolder(env: Environment): string {
  return xdgFolder(env, env.XDG_CONFIG_HOME, '.config');
}

/** Returns the folder for caches: `XDG_CACHE_HOME`, or else `~/.cache`. */
export function userCacheFolder(env: Environment): string {
  return xdgFolder(env, env.XDG_CACHE_HOME, '.cache');
}

/** Resolves an XDG folder. Empty and relative paths are ignored, as the XDG specification requires. */
function xdgFolder(env: Environment, named: string | undefined, name: string): string {
  return named && isAbsolute(named) ? named : join(userHome(env), name);
}
