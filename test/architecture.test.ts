import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from './support/daemon.ts';
import { forbidden, importFaults, SOURCE_ROOT, sourceFiles, specifiersOf } from './support/import-rules.ts';

test('imports go one way: contracts <- kit <- store, http, plugins <- agent, daemons <- supervisor <- cli', () => {
  expect(sourceFiles(SOURCE_ROOT).length).toBeGreaterThan(40);
  expect(importFaults(SOURCE_ROOT)).toEqual([]);
});

test.each([
  ['contracts/webhook-admin.ts', '../kit/errors/errors.ts'],
  ['contracts/webhook-admin.ts', 'fastify'],
  ['contracts/webhook-admin.ts', 'node:fs'],
  ['sdk/index.ts', '../kit/errors/errors.ts'],
  ['sdk/index.ts', '../plugins/registry.ts'],
  ['kit/telemetry/logger.ts', '../../http/server.ts'],
  ['store/sqlite/database.ts', '../../plugins/registry.ts'],
  ['http/mount.ts', '../store/ports/index.ts'],
  ['plugins/registry.ts', '../http/client.ts'],
  ['plugins/registry.ts', '../store/sqlite/index.ts'],
  ['agent/main.ts', '../daemons/run-daemon.ts'],
  ['daemons/rest/index.ts', '../../cli/main.ts'],
  ['testing/index.ts', '../cli/main.ts'],
  ['supervisor/run-supervisor.ts', '../cli/main.ts'],
  ['supervisor/run-supervisor.ts', '../daemons/start-by-name.ts'],
  ['daemons/run-daemon.ts', '../supervisor/run-supervisor.ts'],
  ['daemons/rest/index.ts', '../gateway/index.ts'],
  ['daemons/plugin-runtime/runtime.ts', '../rest/index.ts'],
  ['daemons/rest/domain/plugin-routes.ts', '../routes/plugins.ts'],
  ['daemons/rest/domain/plugin-routes.ts', 'fastify'],
  ['daemons/state/domain/entries.ts', 'better-sqlite3'],
  ['daemons/state/domain/entries.ts', '../../../store/sqlite/index.ts'],
  ['studio/app.ts', '../http/server.ts'],
  ['kit/files/paths.ts', '../../../test/support/daemon.ts'],
  ['somewhere/else.ts', '../kit/errors/errors.ts'],
])('%s may not import %s', (file, specifier) => {
  expect(forbidden(file, specifier)).toBeTypeOf('string');
});

test.each([
  ['kit/errors/errors.ts', '../../contracts/index.ts'],
  ['daemons/start-by-name.ts', './rest/index.ts'],
  ['daemons/rest/routes/plugins.ts', '../domain/plugin-routes.ts'],
  ['daemons/rest/domain/plugin-routes.ts', '../../../plugins/execution.ts'],
  ['daemons/state/domain/entries.ts', '../../../store/ports/index.ts'],
  ['daemons/state/services.ts', '../../store/sqlite/index.ts'],
  ['plugins/registry.ts', '../store/ports/index.ts'],
  ['cli/main.ts', '../daemons/start-by-name.ts'],
])('%s may import %s', (file, specifier) => {
  expect(forbidden(file, specifier)).toBeUndefined();
});

test('every way of naming a module is seen', () => {
  const source = `
    import a from './a.ts';
    import type { B } from './b.ts';
    import './c.ts';
    export * from './d.ts';
    export { e } from './e.ts';
    export type { F } from './f.ts';
    const g = await import('./g.ts');
    type H = import('./h.ts').H;
    export const notAnImport = "import x from './i.ts'";
  `;
  expect(specifiersOf('x.ts', source)).toEqual(
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((n) => `./${n}.ts`),
  );
});

test('a bad import in a file on disk is found and named', async () => {
  const root = await tempDir();
  await mkdir(join(root, 'kit'));
  await writeFile(
    join(root, 'kit/ok.ts'),
    "import type { A } from '../contracts/index.ts';\nexport type B = A;\n",
  );
  await writeFile(join(root, 'kit/bad.ts'), "export const load = () => import('../cli/main.ts');\n");
  expect(importFaults(root)).toEqual([
    { file: 'kit/bad.ts', specifier: '../cli/main.ts', reason: 'kit may import contracts only' },
  ]);
});
