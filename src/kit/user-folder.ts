import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Environment } from './config.ts';

export function userHome(env: Environment): string {
  return env.HOME || homedir();
}

/** Where programs keep what is a user's own: `XDG_CONFIG_HOME` (empty or relative counts as unset, as XDG has it), else `~/.config`. */
export function userConfigFolder(env: Environment): string {
  const named = env.XDG_CONFIG_HOME;
  return named && isAbsolute(named) ? named : join(userHome(env), '.config');
}
