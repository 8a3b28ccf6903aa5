import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../../kit/data/is-record.ts';
import { readPackageJson } from '../package-json.ts';

/** A package found in `node_modules`. For a linked package, `real` is the link's target. */
export interface FoundPackage {
  path: string;
  real: string;
}

/**
 * Maximum number of packages that the search visits. The limit is needed because circular symbolic links could make the
 * search endless.
 */
const MAX_PACKAGES = 5000;

/**
 * Returns the transitive dependencies of a folder's `package.json`, by Node's resolution rules. Skips missing packages,
 * because a later import fails with a clear error.
 */
export async function resolveDependencies(folder: string, only?: string[]): Promise<FoundPackage[]> {
  const found = new Map<string, FoundPackage>();
  const queue = (only ?? (await dependencyNames(folder))).map((name) => ({ name, from: folder }));
  for (let next = queue.pop(); next && found.size < MAX_PACKAGES; next = queue.pop()) {
    const hit = await findPackage(next.name, next.from);
    if (!hit || found.has(hit.path)) continue;
    found.set(hit.path, hit);
    for (const name of await dependencyNames(hit.real)) queue.push({ name, from: hit.real });
  }
  return [...found.values()];
}

async function findPackage(name: string, from: string): Promise<FoundPackage | undefined> {
  // Rejects invalid package names, because the name becomes part of a granted path.
  if (!/^(?:@[\w.-]+\/)?[\w.-]+$/.test(name) || name.split('/').includes('..')) return undefined;
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name);
    const real = await realpath(path).catch(() => undefined);
    if (real) return { path, real };
    if (folder === dirname(folder)) return undefined;
  }
}

async function dependencyNames(folder: string): Promise<string[]> {
  const { dependencies, optionalDependencies, peerDependencies } = (await readPackageJson(folder)) ?? {};
  return [dependencies, optionalDependencies, peerDependencies].flatMap((listed) =>
    isRecord(listed) ? Object.keys(listed) : [],
  );
}
