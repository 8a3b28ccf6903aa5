import {
  createWriteStream,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { PlatformError } from '../../kit/errors/errors.ts';
import { packageRoot } from '../../kit/files/paths.ts';
import { type TarSource, tarOf } from '../../kit/files/tar/write.ts';
import { resolveDependencies } from '../../plugins/index.ts';
import { buildPrograms } from './build-programs.ts';

interface PackageJson extends Record<string, unknown> {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
}

/** Folder in which npm expects every entry of an archive. */
const ENTRY_PREFIX = 'package/';
/** Modification time of all entries, in epoch seconds. A fixed time makes archives reproducible. */
const MODIFIED_AT = 499_162_500;
/**
 * Platforms whose prebuilt binaries are included in addition to this machine's platform. Each platform adds one
 * megabyte.
 */
const COMMON_PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-arm64'];
const CACHE_NAME = 'svc-platform.tgz';

/**
 * Packs the running version of svc as an npm archive that installs without a registry: build, types, schemas and
 * bundled dependencies. @spec docs/decisions/0051
 */
export async function platformArchive(): Promise<Buffer> {
  const dist = join(packageRoot, 'dist');
  if (!existsSync(join(dist, 'cli.js')))
    throw new PlatformError('STORE_ERROR', `${packageRoot} has not been built.`, {
      details: { hint: `Build it first: (cd ${packageRoot} && npm run build)` },
    });
  // The cached archive is never outdated, because a new build replaces the whole folder.
  const cached = join(dist, CACHE_NAME);
  if (existsSync(cached)) return readFile(cached);
  const draft = `${cached}.${process.pid}`;
  try {
    await pipeline(
      Readable.from(tarOf(await sources(), MODIFIED_AT)),
      createGzip(),
      createWriteStream(draft),
    );
    renameSync(draft, cached);
    return await readFile(cached);
  } catch {
    // If the folder is not writable or the disk is full, the archive is not cached.
    rmSync(draft, { force: true });
    const chunks = Readable.from(tarOf(await sources(), MODIFIED_AT)).pipe(createGzip());
    return Buffer.concat(await chunks.toArray());
  }
}

async function sources(): Promise<TarSource[]> {
  const own = readJson(packageRoot);
  const bundled = (await resolveDependencies(packageRoot)).filter(({ path }) => isNeededAtRuntime(path));
  const versions = Object.fromEntries(
    bundled.map(({ real }) => readJson(real)).map(({ name, version }) => [name, version]),
  );
  const { name, version, license, type, bin, engines, os, exports } = own;
  const manifest = { name, version, license, type, bin, engines, os, exports, private: true };
  const bundles = { dependencies: versions, bundleDependencies: Object.keys(versions) };
  return [
    text('package.json', { ...manifest, ...bundles }),
    file(packageRoot, 'bin/svc', 0o755),
    file(packageRoot, 'scripts/run.js'),
    ...['LICENSE', 'llms.txt', 'llms-full.txt', 'dist/THIRD-PARTY-LICENSES.txt'].map((path) =>
      file(packageRoot, path),
    ),
    ...['config', 'schemas'].flatMap((folder) => filesIn(packageRoot, folder, () => true)),
    ...buildPrograms(join(packageRoot, 'dist')).map((path) => file(packageRoot, `dist/${path}`)),
    ...filesIn(packageRoot, 'dist/types', () => true),
    ...bundled.flatMap(({ real }) => bundledFiles(real)),
  ];
}

/**
 * Returns false for node-addon-api, which better-sqlite3 needs only to compile. The package of better-sqlite3 contains
 * prebuilt binaries.
 */
function isNeededAtRuntime(path: string): boolean {
  return !path.endsWith('node-addon-api');
}

function bundledFiles(folder: string): TarSource[] {
  const {
    dependencies: _,
    devDependencies: _dev,
    optionalDependencies: _optional,
    ...rest
  } = readJson(folder);
  const at = `node_modules/${rest.name}`;
  return [
    text(`${at}/package.json`, rest),
    ...filesIn(folder, '', (path) => isUsed(folder, path)).map((source) => ({
      ...source,
      name: source.name.replace(ENTRY_PREFIX, `${ENTRY_PREFIX}${at}/`),
    })),
  ];
}

/**
 * Returns true for code, types, licences, and prebuilt binaries of the included platforms. Returns false for sources to
 * compile and for CommonJS duplicates.
 */
function isUsed(folder: string, path: string): boolean {
  if (/(?:^|\/)(?:src|deps|test)\//.test(path) || path === 'package.json') return false;
  const prebuilt = /^prebuilds\/(.+)\.node$/.exec(path)?.[1];
  if (prebuilt) return [...COMMON_PLATFORMS, ownPlatform()].includes(prebuilt);
  if (path.endsWith('.cjs')) return !existsSync(join(folder, path.replace(/cjs$/, 'js')));
  return /\.(?:m?js|d\.ts|so|dylib)$|^licen[cs]e/i.test(path);
}

function ownPlatform(): string {
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  const isMusl = process.platform === 'linux' && !header?.glibcVersionRuntime;
  return `${process.platform}${isMusl ? 'musl' : ''}-${process.arch}`;
}

function filesIn(root: string, folder: string, isIncluded: (path: string) => boolean): TarSource[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => (folder === '' ? name : `${folder}/${name}`))
    .filter((path) => isIncluded(path) && statSync(join(root, path)).isFile())
    .sort()
    .map((path) => file(root, path));
}

function file(root: string, path: string, mode = 0o644): TarSource {
  const full = join(root, path);
  return { name: ENTRY_PREFIX + path, mode, path: full, size: statSync(full).size };
}

function text(path: string, value: object): TarSource {
  return { name: ENTRY_PREFIX + path, mode: 0o644, text: `${JSON.stringify(value, null, 2)}\n` };
}

function readJson(folder: string): PackageJson {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson;
}
