import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { CONFIG_FILE } from '../../kit/config/config.ts';
import { isRecord } from '../../kit/data/is-record.ts';
import { draftPathOf } from '../../kit/files/draft-path.ts';
import { version } from '../../kit/files/paths.ts';
import { readPackageJson } from '../../plugins/index.ts';
import { archiveContent } from './archive-content.ts';
import { platformArchive } from './platform-archive.ts';

const PACKAGE = 'svc-platform';
const ARCHIVE = `${PACKAGE}-${version}.tgz`;

/**
 * Returns the `vendor` folder of the platform archive. The folder is in the project, or in the plugin if the plugin is
 * outside of a project.
 */
export function vendorFolderOf(plugin: string): string {
  for (let folder = dirname(plugin); ; folder = dirname(folder)) {
    if (existsSync(join(folder, CONFIG_FILE))) return join(folder, 'vendor');
    if (folder === dirname(folder)) return join(plugin, 'vendor');
  }
}

/**
 * Returns the dependency entry for `package.json`. The entry refers to the archive, so `npm install` needs no registry.
 */
export function vendoredDependency(plugin: string, vendor: string): Record<string, string> {
  return { [PACKAGE]: `file:${relative(plugin, join(vendor, ARCHIVE)).split(sep).join('/')}` };
}

/** Writes the platform archive and returns its path. An existing archive is kept unless `replace` is set. */
export async function vendorPlatform(vendor: string, { replace = false } = {}): Promise<string> {
  const path = join(vendor, ARCHIVE);
  if (existsSync(path) && !replace) return path;
  const archive = await platformArchive();
  await mkdir(vendor, { recursive: true });
  const draft = draftPathOf(path);
  try {
    await writeFile(draft, archive, { flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return path;
}

export interface VendoredState {
  /**
   * Dependency on svc-platform in `package.json`, such as `file:../vendor/…`. Null if `package.json` has no such
   * dependency.
   */
  spec: string | null;
  /** Reason why `npm install` and the tests of the plugin fail. Null if no problem was found. */
  fault: string | null;
}

/** Checks that the plugin's archive exists, is intact and matches this version of svc. */
export async function vendoredState(plugin: string): Promise<VendoredState> {
  const manifest = await readPackageJson(plugin);
  const listed = isRecord(manifest?.devDependencies) ? manifest.devDependencies[PACKAGE] : undefined;
  if (typeof listed !== 'string' || !listed.startsWith('file:'))
    return { spec: typeof listed === 'string' ? listed : null, fault: null };
  const path = join(plugin, listed.slice('file:'.length));
  return { spec: listed, fault: await archiveFault(plugin, path) };
}

async function archiveFault(plugin: string, path: string): Promise<string | null> {
  if (!existsSync(path)) return `${path} is missing`;
  // If the dependency is a folder, npm links the folder, so there is no archive to check.
  if (!statSync(path).isFile()) return null;
  const named = new RegExp(`${PACKAGE}-(.+)\\.tgz$`).exec(path)?.[1];
  if (named !== undefined && named !== version)
    return `${path} has version ${named}, but this is svc ${version}`;
  const content = await archiveContent(path);
  if ('fault' in content) return `${path} is damaged (${content.fault})`;
  if (content.name !== PACKAGE || content.version !== version)
    return `${path} contains ${content.name} ${content.version}, but this is ${PACKAGE} ${version}`;
  const locked = await lockedIntegrity(plugin);
  if (locked?.startsWith('sha512-') && locked !== (await sha512Of(path)))
    return `${path} does not match the digest in package-lock.json, so npm install fails with EINTEGRITY`;
  return null;
}

/** Returns the digest of the archive in `package-lock.json`, if any. */
async function lockedIntegrity(plugin: string): Promise<string | undefined> {
  const lock = await readFile(join(plugin, 'package-lock.json'), 'utf8')
    .then(JSON.parse)
    .catch(() => null);
  const packages: unknown = isRecord(lock) ? lock.packages : undefined;
  const entry = isRecord(packages) ? packages[`node_modules/${PACKAGE}`] : undefined;
  return isRecord(entry) && typeof entry.integrity === 'string' ? entry.integrity : undefined;
}

async function sha512Of(path: string): Promise<string> {
  return `sha512-${createHash('sha512')
    .update(await readFile(path))
    .digest('base64')}`;
}

/**
 * Makes `package.json` refer to the platform archive. Removes the old archive from `package-lock.json`. Keeps all other
 * content and the indentation of both files.
 */
export async function pointAtArchive(plugin: string, vendor: string): Promise<void> {
  await editJson(join(plugin, 'package.json'), (value) => {
    const before = isRecord(value.devDependencies) ? value.devDependencies : {};
    value.devDependencies = { ...before, ...vendoredDependency(plugin, vendor) };
  });
  // The lock file contains the digest of the old archive, so npm would reject the new archive.
  await editJson(join(plugin, 'package-lock.json'), (value) => {
    const packages = isRecord(value.packages) ? value.packages : {};
    for (const path of Object.keys(packages))
      if (path === `node_modules/${PACKAGE}` || path.startsWith(`node_modules/${PACKAGE}/`))
        delete packages[path];
  });
}

async function editJson(path: string, edit: (value: Record<string, unknown>) => void): Promise<void> {
  if (!existsSync(path)) return;
  const text = await readFile(path, 'utf8');
  const value: unknown = JSON.parse(text);
  if (!isRecord(value)) return;
  edit(value);
  const indent = /^\{\r?\n([ \t]+)/.exec(text)?.[1] ?? '  ';
  await writeFile(path, `${JSON.stringify(value, null, indent)}\n`);
}
