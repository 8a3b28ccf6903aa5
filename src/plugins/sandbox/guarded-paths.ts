import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { PlatformConfig } from '../../contracts/index.ts';
import { CONFIG_FILE, type Environment } from '../../kit/config/config.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { userConfigFolder } from '../../kit/files/user-folder.ts';
import { isInside } from '../inside.ts';
import { realPathOf } from './real-path.ts';

/** Paths that plugins can never access, directly or through links. */
export interface GuardedPaths {
  /** The project's `.svc` folder. Plugins are allowed to read only plugin folders in its subfolder `plugins`. */
  dataDir: string;
  /** Files and folders with secrets outside of `dataDir`, and sockets of container engines. */
  secrets: readonly string[];
}

/** Settings from which the locations of a project's secrets are derived. */
export interface SecretPlaces {
  projectDir: string;
  /** Path of the active config file, or null if the platform runs with default settings. */
  configFile: string | null;
  config: Pick<PlatformConfig, 'execution'>;
  env: Environment;
}

/**
 * Sockets of container engines. A client of such a socket can become root on the machine, even if the socket is mounted
 * read-only.
 */
const ENGINE_SOCKETS = [
  '/run/docker.sock',
  '/run/podman/podman.sock',
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
];

/**
 * Returns paths that plugins must not access. Includes the project's `.env` and config files, the user's secrets and
 * the sockets of container engines.
 */
export function projectSecrets({ projectDir, configFile, config, env }: SecretPlaces): string[] {
  const { SVC_AGENT_HOME } = env;
  return [
    join(projectDir, '.env'),
    join(projectDir, CONFIG_FILE),
    ...(configFile === null ? [] : [configFile]),
    ...userSecrets(env),
    config.execution.container.socket,
    ...(SVC_AGENT_HOME ? [resolve(SVC_AGENT_HOME)] : []),
  ];
}

/**
 * Returns user-specific paths that plugins must not access. Includes the folder with credentials and the sockets of
 * container engines.
 */
export function userSecrets(env: Environment): string[] {
  const { XDG_RUNTIME_DIR } = env;
  return [
    join(userConfigFolder(env), 'svc'),
    ...ENGINE_SOCKETS,
    ...(XDG_RUNTIME_DIR ? [join(XDG_RUNTIME_DIR, 'podman/podman.sock')] : []),
  ];
}

/** Throws SANDBOX_ERROR if a real path is a secret, contains a secret, or is inside a secret folder. */
export async function refuseSecrets(
  path: string,
  root: string,
  secrets: readonly string[],
  what: string,
): Promise<void> {
  for (const named of secrets) {
    const secret = await realPathOf(named);
    // Host agents cache plugins inside the user's secret folder. A plugin is allowed to access its own folder in this
    // cache.
    const isWithin = isInside(secret, path) && !isInside(root, path);
    if (!isWithin && !isInside(path, secret) && !(await isSameFile(path, secret))) continue;
    throw new PlatformError(
      'SANDBOX_ERROR',
      `${what} (${path}) would expose ${named}, which ${whatIs(named)}, to the plugin; grant another path.`,
      { details: { path, secret: named } },
    );
  }
}

function whatIs(named: string): string {
  return named.endsWith('.sock')
    ? "is a container engine's socket and makes its user root"
    : 'holds secrets of the platform';
}

/** Compares inodes, because a hard link to a secret file has a different path. */
async function isSameFile(path: string, secret: string): Promise<boolean> {
  const [one, other] = await Promise.all([path, secret].map((file) => stat(file).catch(() => undefined)));
  return one?.isFile() === true && other !== undefined && one.ino === other.ino && one.dev === other.dev;
}
