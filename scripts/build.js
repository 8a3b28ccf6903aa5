// Bundles the sources into dist/. `npm ci` runs it (prepare) with any Node, so it first switches to the pinned one. Builds
// into a separate folder, then renames it.
import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { brotliCompress } from 'node:zlib';
import { takeStamp, writeStamp } from './freshness.js';
import { LOCK_HELD, withLock } from './lock.js';
import { pinnedNode, runPinnedNode } from './run.js';
import { emitTypes } from './types.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const MIN_NODE_FOR_BUILD = 22;
const KEEP_CHUNKS_MS = 24 * 3600 * 1000;
/** A package contains only its own build, without chunks of older ones. */
const isPacking = ['pack', 'publish'].includes(process.env.npm_command);

if (Number(process.versions.node.split('.')[0]) < MIN_NODE_FOR_BUILD && existsSync(pinnedNode(root))) {
  process.exit(await runPinnedNode(root, process.argv.slice(1)));
}
try {
  if (process.env[LOCK_HELD]) await build();
  else await withLock(root, (pid) => console.error(`build: waiting for pid ${pid}`), build);
} catch (error) {
  const message = process.stderr.isTTY ? error.message : stripVTControlCharacters(error.message);
  console.error(`build: ${message}`);
  process.exit(1);
}

async function build() {
  const startedAt = Date.now();
  const stamp = await takeStamp(root);
  const out = join(root, `dist.new-${process.pid}`);
  removeLeftovers();
  try {
    const { bundle } = await import('./bundle.js');
    await mkdir(out, { recursive: true });
    const licences = await bundle(root, out);
    await writeFile(join(out, 'THIRD-PARTY-LICENSES.txt'), licences);
    const { buildStudio } = await import('./studio.js');
    await Promise.all([copyAssets(out), emitTypes(root, out), buildStudio(root, out)]);
    writeStamp(out, stamp);
    swapIn(out);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
  console.error(`build: dist/ is ready after ${((Date.now() - startedAt) / 1000).toFixed(1)}s`);
}

/** Builds are exclusive, so remaining folders belong to killed builds. */
function removeLeftovers() {
  for (const name of readdirSync(root))
    if (/^dist\.(?:new|old)-\d+$/.test(name)) rmSync(join(root, name), { recursive: true, force: true });
}

/** Replaces the build folder. */
function swapIn(out) {
  const dist = join(root, 'dist');
  const old = join(root, `dist.old-${process.pid}`);
  if (existsSync(dist)) {
    if (!isPacking) keepRecentChunks(join(dist, 'chunks'), join(out, 'chunks'));
    renameSync(dist, old);
  }
  renameSync(out, dist);
  rmSync(old, { recursive: true, force: true });
}

/** Running programs may still load chunks of their build. Names contain a content hash, so they cannot collide. */
function keepRecentChunks(from, to) {
  if (!existsSync(from)) return;
  const oldest = Date.now() - KEEP_CHUNKS_MS;
  for (const name of readdirSync(from)) {
    const { mtimeMs } = statSync(join(from, name));
    if (mtimeMs < oldest || existsSync(join(to, name))) continue;
    linkSync(join(from, name), join(to, name));
  }
}

/** Assets of the API browser, which are never loaded from a CDN. */
async function copyAssets(out) {
  const from = join(root, 'node_modules', '@fastify', 'swagger-ui', 'static');
  const to = join(out, 'assets', 'swagger-ui');
  await mkdir(to, { recursive: true });
  await cp(join(from, 'favicon-32x32.png'), join(to, 'favicon-32x32.png'));
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
    await writeFile(
      join(to, `${name}.br`),
      await promisify(brotliCompress)(await readFile(join(from, name))),
    );
}
