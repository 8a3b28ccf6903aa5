import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { PlatformConfig } from '../../contracts/index.ts';
import { CONFIG_FILE, type Environment } from '../../kit/config/config.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { userConfigFolder } from '../../kit/files/user-folder.ts';
import { isInside } from '../inside.ts';
import { realPathOf } from './real-path.ts';

/** Paths that no plugin is granted, under any name or link. */
export interface GuardedPaths {
  /** `.svc`, except for installed plugins in its folder `plugins`. */
  dataDir: string;
  /** Files and folders with secrets outside of `dataDir`, and sockets of container engines. */
  secrets: readonly string[];
}

/** Locations of a project's secrets. */
export interface SecretPlaces {
  projectDir: string;
  /** The active config file, under any name; null: defaults. */
  configFile: string | null;
  config: Pick<PlatformConfig, 'execution'>;
  env: Environment;
}

/**
 * Sockets of container engines. Access to an engine is root on the machine; a read-only mount does not prevent
 * connecting.
 */
const ENGINE_SOCKETS = [
  '/run/docker.sock',
  '/run/podman/podman.sock',
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
];

/** The project's `.env` and config, the user's secrets, and the configured container engine's socket. */
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
 * The user's folder with credentials and the host agent's registration, and the sockets of container engines.
 */
export function userSecrets(env: Environment): string[] {
  const { XDG_RUNTIME_DIR } = env;
  return [
    join(userConfigFolder(env), 'svc'),
    ...ENGINE_SOCKETS,
    ...(XDG_RUNTIME_DIR ? [join(XDG_RUNTIME_DIR, 'podman/podman.sock')] : []),
  ];
}

/** Throws SANDBOX_ERROR for a real path that equals, contains or is inside a secret. */
export async function refuseSecrets(
  path: string,
  root: string,
  secrets: readonly string[],
  what: string,
): Promise<void> {
  for (const named of secrets) {
    const secret = await realPathOf(named);
    // A host agent keeps its gateway's plugins in its own folder.
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

/** Whether both paths are the same file. Compares inodes, since a hard link has another path. */
async function isSameFile(path: string, secret: string): Promise<boolean> {
  const [one, other] = await Promise.all([path, secret].map((file) => stat(file).catch(() => undefined)));
  return one?.isFile() === true && other !== undefined && one.ino === other.ino && one.dev === other.dev;
}
