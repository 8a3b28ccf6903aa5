import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from './support/daemon.ts';
import { importFaults } from './support/import-rules.ts';
import { SOURCE_ROOT, sourceFiles } from './support/source-files.ts';

interface Import {
  /** Below `src`. */
  file: string;
  /** The imported file, from the root; created empty. Absent: a module of Node. */
  target?: string;
  statement: string;
}

async function faultsOf(imports: Import[]): Promise<string[]> {
  const folder = await tempDir();
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text, { flag: 'a' });
  };
  for (const { target } of imports) if (target) await write(target, 'export {};\n');
  for (const { file, statement } of imports) await write(`src/${file}`, `${statement}\n`);
  return (await importFaults(folder)).map(({ rule, from, to }) => `${rule}: ${from} -> ${to}`);
}

const relativeTo = (file: string, target: string): string =>
  join('../'.repeat(file.split('/').length), target);

test.each([
  ['contracts/webhook-admin.ts', 'src/kit/errors.ts', 'contracts-imports'],
  ['sdk/index.ts', 'src/kit/errors.ts', 'sdk-imports'],
  ['kit/logger.ts', 'src/http/server.ts', 'kit-imports'],
  ['store/sqlite/database.ts', 'src/plugins/registry.ts', 'store-imports'],
  ['http/mount.ts', 'src/store/ports/index.ts', 'http-imports'],
  ['plugins/registry.ts', 'src/store/sqlite/index.ts', 'plugins-imports'],
  ['agent/main.ts', 'src/daemons/run-daemon.ts', 'agent-imports'],
  ['daemons/rest/index.ts', 'src/cli/main.ts', 'daemons-imports'],
  ['testing/index.ts', 'src/cli/main.ts', 'testing-imports'],
  ['supervisor/run-supervisor.ts', 'src/cli/main.ts', 'supervisor-imports'],
  ['supervisor/run-supervisor.ts', 'src/daemons/start-by-name.ts', 'supervisor-imports'],
  ['daemons/run-daemon.ts', 'src/supervisor/run-supervisor.ts', 'daemons-imports'],
  ['kit/paths.ts', 'test/support/daemon.ts', 'only-src'],
  ['daemons/rest/index.ts', 'src/daemons/gateway/index.ts', 'rest-imports'],
  ['daemons/plugin-runtime/runtime.ts', 'src/daemons/rest/index.ts', 'shared-code-of-services'],
  ['daemons/rest/domain/plugins.ts', 'src/daemons/rest/routes/plugins.ts', 'domain-without-routes'],
  ['daemons/state/domain/entries.ts', 'src/store/sqlite/index.ts', 'domain-without-drivers'],
])('%s may not import %s', async (file, target, rule) => {
  const specifier = relativeTo(file, target);
  for (const statement of [
    `import '${specifier}';`,
    `import type { A } from '${specifier}';`,
    `export const load = () => import('${specifier}');`,
  ])
    expect(await faultsOf([{ file, target, statement }])).toEqual([`${rule}: src/${file} -> ${target}`]);
});

test.each([
  ['contracts/a.ts', 'node:fs', 'contracts-and-sdk-packages'],
  ['contracts/a.ts', 'fastify', 'contracts-and-sdk-packages'],
  ['daemons/rest/domain/a.ts', 'fastify', 'domain-without-drivers'],
  ['daemons/rest/domain/a.ts', 'better-sqlite3', 'domain-without-drivers'],
  ['somewhere/else.ts', 'node:fs', 'known-folders'],
])('%s may not import %s', async (file, specifier, rule) => {
  const target = specifier.startsWith('node:') ? {} : { target: `node_modules/${specifier}/index.js` };
  const [fault] = await faultsOf([{ file, ...target, statement: `import '${specifier}';` }]);
  expect(fault).toMatch(new RegExp(`^${rule}: src/${file} -> `));
});

test.each([
  ['kit/errors.ts', 'src/contracts/index.ts'],
  ['daemons/start-by-name.ts', 'src/daemons/rest/index.ts'],
  ['daemons/rest/routes/plugins.ts', 'src/daemons/rest/domain/plugins.ts'],
  ['daemons/state/domain/entries.ts', 'src/store/ports/index.ts'],
  ['daemons/state/services.ts', 'src/store/sqlite/index.ts'],
  ['plugins/registry.ts', 'src/store/ports/index.ts'],
  ['cli/main.ts', 'src/daemons/start-by-name.ts'],
])('%s may import %s', async (file, target) => {
  const statement = `import '${relativeTo(file, target)}';`;
  expect(await faultsOf([{ file, target, statement }])).toEqual([]);
});

test('a cycle of type imports is a fault', async () => {
  const faults = await faultsOf([
    { file: 'kit/a.ts', statement: "import type { B } from './b.ts';" },
    { file: 'kit/b.ts', statement: "import type { A } from './a.ts';" },
  ]);
  expect(faults).toEqual(['no-cycles: src/kit/a.ts -> src/kit/b.ts']);
});

test('no type names a file by import(), which dependency-cruiser does not see', async () => {
  for (const file of sourceFiles(SOURCE_ROOT))
    expect([file, await readFile(join(SOURCE_ROOT, file), 'utf8')]).toEqual([
      file,
      expect.not.stringMatching(/typeof import\('\.|import\('\.[^']*'\)\.[A-Z]/),
    ]);
});
