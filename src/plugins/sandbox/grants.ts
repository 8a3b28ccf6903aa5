import { existsSync } from 'node:fs';
import { opendir, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Permissions } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { entryFile, isBuilt, packageRoot, publicParts } from '../../kit/files/paths.ts';
import { isInside } from '../inside.ts';
import { resolveDependencies } from './dependencies.ts';
import { type GuardedPaths, refuseSecrets } from './guarded-paths.ts';
import { realPathOf } from './real-path.ts';

/**
 * Absolute paths of the files and folders that a plugin's process is allowed to access. A folder includes its content.
 */
export interface Grants {
  read: string[];
  write: string[];
  /** Symbolic links outside the plugin's folder that point to a granted dependency. */
  links: Array<{ path: string; target: string }>;
}

export interface GrantsInput {
  /** Real path of the plugin's folder. */
  root: string;
  permissions: Permissions;
  /** The project's `.svc` folder. Only plugins in its subfolder `plugins` can be granted. */
  dataDir: string;
  /** Files and folders, in addition to `dataDir`, that are never granted. */
  secrets?: readonly string[];
}

const MAX_ENTRIES = 500_000;

/**
 * Returns the paths that a plugin is allowed to access. Throws SANDBOX_ERROR if a path would expose other data. Throws
 * SANDBOX_ERROR if a link in the plugin's folder would expose other data.
 */
export async function resolveGrants({ root, permissions, ...input }: GrantsInput): Promise<Grants> {
  const dataDir = await realPathOf(input.dataDir);
  const guarded = { dataDir, secrets: input.secrets ?? [] };
  refuseDataFolder(root, dataDir, "the plugin's folder");
  await refuseSecrets(root, root, guarded.secrets, "the plugin's folder");
  const dependencies = [
    ...(await resolveDependencies(root)),
    // Packages needed by the SDK, and by the runner to validate schemas and to read event streams.
    ...(await resolveDependencies(packageRoot, isBuilt ? ['zod'] : ['zod', 'ajv', 'eventsource-parser'])),
  ].filter(({ real }) => !isInside(root, real));
  for (const { path, real } of dependencies) {
    refuseDataFolder(real, dataDir, `the dependency ${path}`);
    await refuseSecrets(real, root, guarded.secrets, `the dependency ${path}`);
  }
  const asked = {
    read: await manifestPaths('read', permissions.fs?.read ?? [], root, guarded),
    write: await manifestPaths('write', permissions.fs?.write ?? [], root, guarded),
  };
  const read = unique([root, ...runtimeFiles(), ...dependencies.map(({ real }) => real), ...asked.read]);
  for (const path of [...read, ...asked.write]) refuseWildcard(path);
  // The `node_modules` folder of a plugin under development can link to the platform's package. Such links are allowed,
  // because the package holds no secrets.
  const linkable = await Promise.all(
    [packageRoot, ...publicParts].filter((path) => !isInside(path, dataDir)).map((path) => realpath(path)),
  );
  await refuseEscapingLinks(root, [...read, ...asked.write, ...linkable]);
  return {
    read: unique([...read, ...packageFilesAbove([root, ...dependencies.map(({ real }) => real)])]),
    write: asked.write,
    links: dependencies
      .filter(({ path, real }) => path !== real && !read.some((folder) => isInside(folder, path)))
      .map(({ path, real }) => ({ path, target: real })),
  };
}

/**
 * Returns the files of the runner and the SDK. Without a build, returns the source folders that the runner and the SDK
 * import.
 */
function runtimeFiles(): string[] {
  if (isBuilt) return [entryFile('runner'), entryFile('sdk'), join(packageRoot, 'package.json')];
  const sources = ['contracts', 'kit', 'plugins', 'sdk'].map((name) => join(packageRoot, 'src', name));
  return [...sources, join(packageRoot, 'package.json')];
}

function packageFilesAbove(folders: string[]): string[] {
  const files = new Set<string>();
  for (const start of folders) {
    for (let folder = dirname(start); ; folder = dirname(folder)) {
      const file = join(folder, 'package.json');
      if (existsSync(file)) files.add(file);
      if (folder === dirname(folder)) break;
    }
  }
  return [...files];
}

async function manifestPaths(
  kind: 'read' | 'write',
  paths: string[],
  root: string,
  guarded: GuardedPaths,
): Promise<string[]> {
  return Promise.all(paths.map((path, index) => grantedPath({ kind, index, path }, root, guarded)));
}

/** Returns the real path of an entry of `permissions.fs`. Throws SANDBOX_ERROR if the path must not be granted. */
export async function grantedPath(
  { kind, index, path }: { kind: 'read' | 'write'; index: number; path: string },
  root: string,
  { dataDir, secrets }: GuardedPaths,
): Promise<string> {
  const real = await realPathOf(resolve(root, path));
  const what = `permissions.fs.${kind}[${index}] "${path}"`;
  refuseDataFolder(real, dataDir, what);
  await refuseSecrets(real, root, secrets, what);
  refuseKernelFolder(real, what);
  return real;
}

/**
 * Rejects paths inside or above the `.svc` folder, which holds keys and databases. Allows paths of installed plugins.
 */
function refuseDataFolder(path: string, dataDir: string, what: string): void {
  const installed = join(dataDir, 'plugins');
  const isInstalled = isInside(installed, path) && path !== installed;
  if (!isInside(path, dataDir) && (!isInside(dataDir, path) || isInstalled)) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `${what} (${path}) would expose the platform's data folder ${dataDir} to the plugin; grant another folder.`,
    { details: { path, dataDir } },
  );
}

/** Kernel file systems, which expose devices, and the environment and memory of other processes. */
const KERNEL_FOLDERS = ['/proc', '/sys', '/dev'];

function refuseKernelFolder(path: string, what: string): void {
  if (!KERNEL_FOLDERS.some((folder) => isInside(folder, path) || isInside(path, folder))) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `${what} cannot be granted: ${path} exposes other processes to the plugin.`,
    {
      details: { path },
    },
  );
}

/** Rejects paths with a `*`, because Node's permission flags treat `*` as a wildcard. */
function refuseWildcard(path: string): void {
  if (!path.includes('*')) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `The path ${path} cannot be granted because it contains a "*"; rename it.`,
    {
      details: { path },
    },
  );
}

/** Rejects symbolic links that lead outside the granted paths, because Node's permission model follows links. */
async function refuseEscapingLinks(root: string, allowed: string[]): Promise<void> {
  const folders = [root];
  let seen = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (++seen > MAX_ENTRIES) throw tooMany(root);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isSymbolicLink()) await refuseEscapingLink(path, allowed);
    }
  }
}

async function refuseEscapingLink(path: string, allowed: string[]): Promise<void> {
  // Rejects links without a target too, because the target could be created later.
  const target = await realpath(path).catch(() => undefined);
  if (target !== undefined && allowed.some((folder) => isInside(folder, target))) return;
  const where = target === undefined ? 'nothing' : target;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `The plugin holds a symbolic link that leaves its folder: ${path} points to ${where}. Replace it with the file itself, or grant its target in permissions.fs.read.`,
    { details: { path, target: target ?? null } },
  );
}

function tooMany(root: string): PlatformError {
  return new PlatformError(
    'SANDBOX_ERROR',
    `The plugin's folder ${root} has more than ${MAX_ENTRIES} files.`,
  );
}

function unique(paths: string[]): string[] {
  return [...new Set(paths)];
}
