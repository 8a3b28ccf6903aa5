// Run after adding a dependency: `npm run lockfile`. With a registry that has binaries of one platform only, npm omits the
// others from the lockfile, and `npm ci` rejects it. This adds the missing optional packages for all platforms.
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
    // Ranges cannot be resolved here; binaries have exact versions.
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

/** From the package itself, because the lockfile may lack them. */
function optionalDependencies(path) {
  try {
    return JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')).optionalDependencies ?? {};
  } catch {
    return {};
  }
}

/** Path of the entry: top level, or below its package if another version is there; null if it already exists. */
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
  if (!cpu) throw new Error(`${name} has no platform in its name.`);
  const libc = parts.some((part) => part.startsWith('musl')) ? 'musl' : 'glibc';
  return { cpu: [cpu], ...(os ? { os: [os] } : {}), ...(os === 'linux' ? { libc: [libc] } : {}) };
}
