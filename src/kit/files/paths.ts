import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

function findPackageRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'bin', 'svc'))) return folder;
    if (folder === dirname(folder))
      throw new Error(
        'The svc package is incomplete: package.json and bin/svc were not found above this file.',
      );
  }
}

/** Root folder of the installed package or the checkout. */
export const packageRoot = findPackageRoot();

/**
 * Files and folders of the package that a plugin under development is allowed to read. They contain no project data.
 */
export const publicParts = ['package.json', 'bin', 'config', 'dist', 'schemas', 'llms.txt', 'llms-full.txt']
  .map((part) => join(packageRoot, part))
  .filter((part) => existsSync(part));

/** Whether this code runs from `dist`. Tests and development run the sources in `src`. */
export const isBuilt = fileURLToPath(import.meta.url).startsWith(join(packageRoot, 'dist') + sep);

export const version: string = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')).version;

const ENTRIES = {
  cli: 'src/cli/main.ts',
  daemon: 'src/daemons/main.ts',
  runner: 'src/plugins/runner/main.ts',
  committer: 'src/store/sqlite/svc/committer/main.ts',
  evaluator: 'src/daemons/workflow/evaluation/main.ts',
  sdk: 'src/sdk/index.ts',
  telemetry: 'src/store/telemetry/worker.ts',
  textIndex: 'src/store/sqlite/svc/text-index/worker.ts',
  vectors: 'src/store/sqlite/state/vectors-worker.ts',
} as const;

/**
 * Returns the entry file of a platform program or of the SDK. The file is in `dist` or `src`, depending on `isBuilt`.
 */
export function entryFile(name: keyof typeof ENTRIES): string {
  return isBuilt ? join(packageRoot, 'dist', `${name}.js`) : join(packageRoot, ENTRIES[name]);
}
