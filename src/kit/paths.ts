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

/** The folder of the installed package, or of the checkout. */
export const packageRoot = findPackageRoot();

/** What a plugin under development is shown of the package: programs, schemas, and nothing that a project keeps. */
export const publicParts = ['package.json', 'bin', 'config', 'dist']
  .map((part) => join(packageRoot, part))
  .filter((part) => existsSync(part));

/** Whether this very file runs from the build; tests and development run the sources as they are. */
export const isBuilt = fileURLToPath(import.meta.url).startsWith(join(packageRoot, 'dist') + sep);

export const version: string = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')).version;

const ENTRIES = {
  cli: 'src/cli/main.ts',
  daemon: 'src/daemons/main.ts',
  runner: 'src/plugins/runner/main.ts',
  committer: 'src/store/sqlite/committer/main.ts',
  evaluator: 'src/daemons/workflow/evaluation/main.ts',
  sdk: 'src/sdk/index.ts',
  telemetry: 'src/store/sqlite/telemetry-worker.ts',
  textIndex: 'src/store/sqlite/text-index/worker.ts',
  vectors: 'src/store/sqlite/vectors-worker.ts',
} as const;

/** The file to start (or, for `sdk`, to import) for one of the platform's programs, built or as source like the caller. */
export function entryFile(name: keyof typeof ENTRIES): string {
  return isBuilt ? join(packageRoot, 'dist', `${name}.js`) : join(packageRoot, ENTRIES[name]);
}
