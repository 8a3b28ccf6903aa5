import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../src/kit/security/random.ts';
import { createDescriber, validatePlugin } from '../../src/plugins/index.ts';
import { tempDir } from '../support/daemon.ts';
import { requestFor, SANDBOXES, startBackend } from './support.ts';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'demo',
  version: '1.0.0',
  commands: [{ id: 'go', handler: 'main.js#go' }],
};

async function pluginOf(files: Record<string, string>, handler = 'main.js#go'): Promise<string> {
  const folder = await tempDir();
  const manifest = { ...MANIFEST, commands: [{ id: 'go', handler }] };
  const all = { 'package.json': '{"type": "module"}', 'svc.plugin.json': JSON.stringify(manifest), ...files };
  for (const [file, content] of Object.entries(all)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  return folder;
}

describe.each(SANDBOXES)('under %s', (sandbox) => {
  test.each([
    [
      'a syntax error',
      'main.js:2:18: Unexpected token',
      'export const b = = 4;',
      { 'main.js': 'export const a = 1;\nexport const b = = 4;\nexport const go = () => 1;\n' },
    ],
    [
      'a syntax error in an import',
      'lib/deep.js:3:5: Unexpected identifier',
      'foo bar;',
      {
        'main.js': "import './lib/deep.js';\nexport const go = () => 1;\n",
        'lib/deep.js': 'const a = 1;\n\nfoo bar;\n',
      },
    ],
    [
      'a name that a module does not export',
      "main.js:2:10: The requested module './lib.js' does not provide",
      "import { gone } from './lib.js';",
      {
        'main.js': "\nimport { gone } from './lib.js';\nexport const go = gone;\n",
        'lib.js': 'export const a = 1;',
      },
    ],
    [
      'a package that is not installed',
      "main.js:1:19: Cannot find package 'no-such-package'",
      "import none from 'no-such-package';",
      { 'main.js': "import none from 'no-such-package';\nexport const go = none;\n" },
    ],
    [
      'a file that does not exist',
      'main.js:1:11: Cannot find module',
      "import './gone.js';",
      { 'main.js': "import './gone.js';\nexport const go = () => 1;\n" },
    ],
    [
      'code that throws as it is loaded',
      'main.js:2:7: no luck',
      "throw new Error('no luck');",
      { 'main.js': "export const go = () => 1;\nthrow new Error('no luck');\n" },
    ],
  ])('%s names file, line, column and the line itself', async (_name, place, line, files) => {
    const folder = await pluginOf(files);
    const { backend } = await startBackend({ sandbox });
    const { faults } = await validatePlugin(folder, createDescriber(backend, systemRandom()));
    expect(faults).toHaveLength(1);
    expect(faults[0]!.message).toContain(place);
    expect(faults[0]!.message).toContain(`\n    | ${line}`);
  });

  test('an error that a handler throws has its place, in TypeScript and in bundled output', async () => {
    const folder = await pluginOf({
      'main.ts':
        'interface Order { id: string }\n\nexport const go = (): Order => {\n  throw new Error("in ts");\n};\n',
      'dist/main.js':
        'const go=()=>{throw new Error("in a bundle")};export{go};\n//# sourceMappingURL=main.js.map\n',
      // One mapping for each statement: `throw` of the output is line 3, column 3 of src/main.ts.
      'dist/main.js.map': JSON.stringify({
        version: 3,
        sources: ['../src/main.ts'],
        names: [],
        mappings: 'AAAA,aAEE',
      }),
      'src/main.ts': 'export const go = () => {\n  // why\n  throw new Error("in a bundle");\n};\n',
    });
    const { backend, logs } = await startBackend({ sandbox });
    const call = (handler: string) =>
      backend.run(requestFor(handler, { plugin: 'demo', root: folder })).catch((error: unknown) => error);
    expect(await call('main.ts#go')).toMatchObject({ message: 'in ts', details: { at: 'main.ts:4:9' } });
    expect(await call('dist/main.js#go')).toMatchObject({
      message: 'in a bundle',
      details: { at: 'src/main.ts:3:3' },
    });
    expect(logs.lines.at(-1)).toMatchObject({
      requestId: 'request-1',
      meta: { at: 'src/main.ts:3:3', stack: expect.stringContaining('src/main.ts:3:3') },
    });
  });
});
