import { existsSync, realpathSync, statSync } from 'node:fs';
import process from 'node:process';
import { PlatformError } from '../../kit/errors/errors.ts';
import { isInside } from '../inside.ts';
import { NETWORK_FILES, SYSTEM_FOLDERS } from './bwrap.ts';
import { projectSecrets, type SecretPlaces } from './guarded-paths.ts';
import { realPathOf } from './real-path.ts';

/** Folder of links to programs, which some systems have outside of `/usr`. */
export const ALTERNATIVES = '/etc/alternatives';
const BOUND = [...SYSTEM_FOLDERS, ...NETWORK_FILES, ALTERNATIVES];

/** Settings from which the paths that scripts must not read are derived. */
export type HiddenPlaces = SecretPlaces & { dataDir: string };

/**
 * Returns bwrap's options that cover the project, the data folder and the secrets of the platform where they are inside
 * of a system folder, such as `/usr/src/app`. Throws SANDBOX_ERROR if a cover would hide programs.
 */
export async function coversOf(places: HiddenPlaces, bound: readonly string[] = BOUND): Promise<string[]> {
  const folders = bound.filter((path) => existsSync(path)).map((path) => realpathSync(path));
  const named = [places.projectDir, places.dataDir, ...projectSecrets(places)];
  const real = await Promise.all(named.map(realPathOf));
  const hidden = [...new Set(real)].filter((path) => folders.some((folder) => isInside(folder, path)));
  const needed = [...folders, realpathSync(process.execPath)];
  for (const path of hidden) if (needed.some((one) => isInside(path, one))) throw unhideable(path);
  // A path inside of a covered folder does not exist in the sandbox.
  const outermost = hidden.filter((path) => !hidden.some((other) => other !== path && isInside(other, path)));
  return outermost.flatMap(coverOf);
}

/** The memory of a cover is never used, because it is read-only. */
function coverOf(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isDirectory() ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path];
}

function unhideable(path: string): PlatformError {
  return new PlatformError(
    'SANDBOX_ERROR',
    `Scripts (run:) could read ${path}, which belongs to the platform: it contains programs that scripts need, so it cannot be hidden. Move the project and its data folder out of the system's folders.`,
    { details: { path } },
  );
}
