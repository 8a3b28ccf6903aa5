import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CONFIG_FILE, type Environment } from '../../kit/config.ts';
import { PlatformError } from '../../kit/errors.ts';
import { userConfigFolder } from '../../kit/user-folder.ts';
import { isInside } from '../inside.ts';
import { realPathOf } from './real-path.ts';

/** What no plugin is granted, by whatever name or link. */
export interface GuardedPaths {
  /** `.svc`, save for what the marketplace installed in `plugins` below it. */
  dataDir: string;
  /** Files and folders with secrets outside of it. */
  secrets: readonly string[];
}

/** Where a project keeps its secrets. */
export interface SecretPlaces {
  projectDir: string;
  /** The config in force, whatever its name; null: the defaults. */
  configFile: string | null;
  env: Environment;
}

/** The project's `.env` and config, and the user's folder with logins and the host agent's registration. */
export function projectSecrets({ projectDir, configFile, env }: SecretPlaces): string[] {
  const { SVC_AGENT_HOME } = env;
  return [
    join(projectDir, '.env'),
    join(projectDir, CONFIG_FILE),
    ...(configFile === null ? [] : [configFile]),
    ...userSecrets(env),
    ...(SVC_AGENT_HOME ? [resolve(SVC_AGENT_HOME)] : []),
  ];
}

export function userSecrets(env: Environment): string[] {
  return [join(userConfigFolder(env), 'svc')];
}

/** Throws SANDBOX_ERROR for a real path that is one of the secrets, lies in one, or holds one. */
export async function refuseSecrets(
  path: string,
  root: string,
  secrets: readonly string[],
  what: string,
): Promise<void> {
  for (const named of secrets) {
    const secret = await realPathOf(named);
    // A host agent keeps the plugins of its gateway in its own folder.
    const isWithin = isInside(secret, path) && !isInside(root, path);
    if (!isWithin && !isInside(path, secret) && !(await isSameFile(path, secret))) continue;
    throw new PlatformError(
      'SANDBOX_ERROR',
      `${what} (${path}) would open ${named}, which holds secrets of the platform, to the plugin; name a path apart from it.`,
      { details: { path, secret: named } },
    );
  }
}

/** A hard link has a path of its own. */
async function isSameFile(path: string, secret: string): Promise<boolean> {
  const [one, other] = await Promise.all([path, secret].map((file) => stat(file).catch(() => undefined)));
  return one?.isFile() === true && other !== undefined && one.ino === other.ino && one.dev === other.dev;
}
