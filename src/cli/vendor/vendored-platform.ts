import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { CONFIG_FILE } from '../../kit/config.ts';
import { draftPathOf } from '../../kit/draft-path.ts';
import { isRecord } from '../../kit/is-record.ts';
import { version } from '../../kit/paths.ts';
import { readPackageJson } from '../../plugins/index.ts';
import { archiveContent } from './archive-content.ts';
import { platformArchive } from './platform-archive.ts';

const PACKAGE = 'svc-platform';
const ARCHIVE = `${PACKAGE}-${version}.tgz`;

/** The folder that keeps a plugin's archive: that of the project, whose plugins share it; else the plugin's own. */
export function vendorFolderOf(plugin: string): string {
  for (let folder = dirname(plugin); ; folder = dirname(folder)) {
    if (existsSync(join(folder, CONFIG_FILE))) return join(folder, 'vendor');
    if (folder === dirname(folder)) return join(plugin, 'vendor');
  }
}

/** What a plugin's `package.json` depends on, so that `npm install` needs no registry. */
export function vendoredDependency(plugin: string, vendor: string): Record<string, string> {
  return { [PACKAGE]: `file:${relative(plugin, join(vendor, ARCHIVE)).split(sep).join('/')}` };
}

/** Writes the archive of the platform that runs; one that is there stays, unless `replace`. Resolves with its path. */
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
  /** As `package.json` has it; null: it names no archive. */
  spec: string | null;
  /** What keeps `npm install` and the tests from working; null: nothing. */
  fault: string | null;
}

/** Whether the archive that a plugin depends on is there, whole, and of the version that runs. */
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
  // A folder is linked by npm as it is.
  if (!statSync(path).isFile()) return null;
  const named = new RegExp(`${PACKAGE}-(.+)\\.tgz$`).exec(path)?.[1];
  if (named !== undefined && named !== version)
    return `${path} is of version ${named}, but svc ${version} runs`;
  const content = await archiveContent(path);
  if ('fault' in content) return `${path} is damaged (${content.fault})`;
  if (content.name !== PACKAGE || content.version !== version)
    return `${path} holds ${content.name} ${content.version}, but ${PACKAGE} ${version} runs`;
  const locked = await lockedIntegrity(plugin);
  if (locked?.startsWith('sha512-') && locked !== (await sha512Of(path)))
    return `${path} is not the file whose digest package-lock.json has, so npm install fails with EINTEGRITY`;
  return null;
}

/** The digest that `npm install` demands of the archive; undefined where it demands none. */
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
 * Has a plugin's `package.json` name the archive of this platform, and its lock file ask for no other. Formatting and the
 * other entries of both stay.
 */
export async function pointAtArchive(plugin: string, vendor: string): Promise<void> {
  await editJson(join(plugin, 'package.json'), (value) => {
    const before = isRecord(value.devDependencies) ? value.devDependencies : {};
    value.devDependencies = { ...before, ...vendoredDependency(plugin, vendor) };
  });
  // npm would refuse the new bytes under the digest of the old ones.
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
