// Run after adding a dependency: `npm run lockfile`. A registry that holds the binaries of one platform only makes
// npm leave the others out of the lockfile, and `npm ci` then refuses it as out of sync. This adds what the installed
// packages name as optional: by exact version, for its platform, so that other platforms skip it or fetch it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = join(root, 'package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));
const added = [];

for (const [path, entry] of Object.entries(lock.packages)) {
  if (path === '') continue;
  for (const [name, version] of Object.entries(optionalDependencies(path))) {
    // A range is not ours to resolve; binaries are named by exact version.
    const place = /^\d/.test(version) ? placeFor(path, name, version) : null;
    if (!place) continue;
    lock.packages[place] = {
      version,
      ...platformOf(name),
      ...(entry.dev ? { dev: true } : {}),
      optional: true,
    };
    added.push(`${name}@${version}`);
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length > 0 ? `added ${added.join(', ')}` : 'nothing is missing');

/** As the package itself says; the lockfile may already lack them. */
function optionalDependencies(path) {
  try {
    return JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')).optionalDependencies ?? {};
  } catch {
    return {};
  }
}

/** Where the entry belongs: at the top, or under its package when the top has another version; null when it is there. */
function placeFor(path, name, version) {
  const places = [`node_modules/${name}`, `${path}/node_modules/${name}`];
  if (places.some((place) => lock.packages[place]?.version === version)) return null;
  return places.find((place) => !lock.packages[place]) ?? null;
}

/** Binary packages are named after their platform: `…-linux-x64-musl`. */
function platformOf(name) {
  const parts = name.split(/[-/]/);
  const os = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'].find((part) =>
    parts.includes(part),
  );
  const cpu = ['arm64', 'arm', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'x64', 'wasm32'].find((part) =>
    parts.includes(part),
  );
  if (!cpu) throw new Error(`${name} does not tell its platform.`);
  const libc = parts.some((part) => part.startsWith('musl')) ? 'musl' : 'glibc';
  return { cpu: [cpu], ...(os ? { os: [os] } : {}), ...(os === 'linux' ? { libc: [libc] } : {}) };
}
