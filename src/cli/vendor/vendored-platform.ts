import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { CONFIG_FILE } from '../../kit/config.ts';
import { draftPathOf } from '../../kit/draft-path.ts';
import { isRecord } from '../../kit/is-record.ts';
import { version } from '../../kit/paths.ts';
import { readPackageJson } from '../../plugins/index.ts';
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

/** Whether the archive that a plugin depends on is there, and of the version that runs. */
export async function vendoredState(plugin: string): Promise<VendoredState> {
  const manifest = await readPackageJson(plugin);
  const listed = isRecord(manifest?.devDependencies) ? manifest.devDependencies[PACKAGE] : undefined;
  if (typeof listed !== 'string' || !listed.startsWith('file:'))
    return { spec: typeof listed === 'string' ? listed : null, fault: null };
  const path = join(plugin, listed.slice('file:'.length));
  const found = new RegExp(`${PACKAGE}-(.+)\\.tgz$`).exec(path)?.[1];
  if (!existsSync(path)) return { spec: listed, fault: `${path} is missing` };
  if (found !== undefined && found !== version)
    return { spec: listed, fault: `${path} is of version ${found}, but svc ${version} runs` };
  return { spec: listed, fault: null };
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
