import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildPrograms } from '../../src/cli/vendor/build-programs.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';

/** What `npm pack` puts into the package. */
interface Packed {
  filename: string;
  size: number;
  unpackedSize: number;
  files: Array<{ path: string; size: number }>;
}

const MIB = 1024 * 1024;
const MAX_UNPACKED = 12 * MIB;

let folder: string;
let packed: Packed;
let consumer: string;

const npm = (args: string[], cwd: string): string =>
  execFileSync('npm', [...args, '--ignore-scripts', '--loglevel=error'], { cwd, encoding: 'utf8' });

/** The package as it would be published, in a project of somebody else. Needs a current build: `npm test` makes one. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-package-'));
  [packed] = JSON.parse(npm(['pack', '--json', '--pack-destination', folder], packageRoot)) as [Packed];
  consumer = join(folder, 'consumer');
  const installed = join(consumer, 'node_modules', 'svc-platform');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, packed.filename), '--strip-components=1', '-C', installed]);
  // Its two dependencies and the compiler, as an install would bring them.
  for (const name of ['zod', 'better-sqlite3', 'typescript', '@types/node', 'undici-types']) {
    const target = join(consumer, 'node_modules', name);
    mkdirSync(join(target, '..'), { recursive: true });
    symlinkSync(join(packageRoot, 'node_modules', name), target);
  }
  return () => rm(folder, { recursive: true, force: true });
}, 120_000);

test('the package is lean: what runs, its declarations, its pages', () => {
  const paths = packed.files.map(({ path }) => path);
  const foreign = paths.filter((path) =>
    /(?:^|\/)(?:test|src|bench|node_modules)\/|\.test\.|\.map$/.test(path),
  );
  expect(foreign).toEqual([]);
  for (const path of [
    'bin/svc',
    'dist/cli.js',
    'dist/sdk.js',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'docs/cli.md',
    'schemas/plugin.schema.json',
    'schemas/svc.schema.json',
    'schemas/workflow.schema.json',
  ])
    expect(paths).toContain(path);
  // A checkout keeps chunks of earlier builds. The build before `npm pack` leaves them out.
  const programs = new Set(buildPrograms(join(packageRoot, 'dist')).map((path) => `dist/${path}`));
  const own = packed.files.filter(({ path }) => !path.startsWith('dist/chunks/') || programs.has(path));
  const size = own.reduce((sum, file) => sum + file.size, 0);
  expect(size).toBeLessThan(MAX_UNPACKED);
  const largest = own.toSorted((a, b) => b.size - a.size).slice(0, 5);
  console.log(
    `${(size / MIB).toFixed(1)} MiB in ${own.length} files;`,
    largest.map(({ path, size }) => `${path} ${Math.round(size / 1024)} KiB`).join(', '),
  );
});

test('the first file of the command line loads no schema library: what needs it comes once a command is known', () => {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    const text = readFileSync(join(packageRoot, 'dist', path), 'utf8');
    expect([path, text.includes('ZodObject')]).toEqual([path, false]);
    for (const [, name] of text.matchAll(/^import .*["']\.\/(?:chunks\/)?([\w.-]+\.js)["'];$/gm))
      visit(`chunks/${name}`);
  };
  visit('cli.js');
  expect(reached.size).toBeGreaterThan(2);
});

const PROGRAM = `
import { defineCommand, defineRoute, ok, z, type PluginContextV3 } from 'svc-platform/sdk';
import { PLATFORM_CODES, type PlatformCode } from 'svc-platform/contracts';
import { createTestHost, type TestHost } from 'svc-platform/testing';
import { z as own } from 'zod';

const Input = z.object({ name: z.string(), tags: own.array(own.string()).default([]) });
export const greet = defineCommand({
  input: Input,
  async execute(ctx: PluginContextV3, input) {
    const name: string = input.name;
    // @ts-expect-error a number is no string
    const wrong: number = input.name;
    return ok({ hello: name, wrong });
  },
});
export const route = defineRoute({ execute: () => ok({}) });
export const status: number = PLATFORM_CODES['NOT_FOUND' satisfies PlatformCode];
export const host: () => Promise<TestHost> = () => createTestHost({ plugin: '.' });
`;

test.each([
  ['nodenext', 'nodenext'],
  ['node16', 'node16'],
  ['preserve', 'bundler'],
])(
  'a TypeScript project compiles against it: module %s, resolution %s',
  { timeout: 90_000 },
  (module, moduleResolution) => {
    writeFileSync(
      join(consumer, 'package.json'),
      JSON.stringify({ name: 'consumer', private: true, type: 'module' }),
    );
    writeFileSync(join(consumer, 'index.ts'), PROGRAM);
    writeFileSync(
      join(consumer, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          module,
          moduleResolution,
          target: 'es2024',
          lib: ['es2024', 'esnext.disposable'],
          types: ['node'],
          strict: true,
          // Our declarations are checked as well.
          skipLibCheck: false,
          noEmit: true,
        },
        files: ['index.ts'],
      }),
    );
    const tsc = join(packageRoot, 'node_modules', '.bin', 'tsc');
    let output = '';
    try {
      // Several checkers would each resolve the same declarations, at twice the processor time.
      execFileSync(tsc, ['-p', consumer, '--checkers', '1'], { encoding: 'utf8' });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    expect(output).toBe('');
  },
);

test('its JSON Schemas resolve as modules of the package', () => {
  writeFileSync(
    join(consumer, 'schemas.mjs'),
    `const load = async (name) => (await import('svc-platform/schemas/' + name + '.schema.json', { with: { type: 'json' } })).default;
     console.log(JSON.stringify((await Promise.all(['plugin', 'svc', 'workflow'].map(load))).map(({ title }) => title)));`,
  );
  const printed = execFileSync(process.execPath, ['schemas.mjs'], { cwd: consumer, encoding: 'utf8' });
  expect(JSON.parse(printed)).toEqual(['svc.plugin.json', 'svc.config.json', 'Workflow']);
});

test('it runs from where it was installed: the command, the SDK, schemas of two copies of zod in one', () => {
  const at = join(consumer, 'node_modules', 'svc-platform');
  const node = (...args: string[]): string =>
    execFileSync(process.execPath, args, {
      cwd: consumer,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: folder },
    });
  expect(node(join(at, 'bin', 'svc'), '--version').trim()).toMatch(/^\d+\.\d+\.\d+$/);
  expect(node(join(at, 'bin', 'svc'), 'explain', 'NOT_FOUND')).toContain('404');
  expect(JSON.parse(node(join(at, 'bin', 'svc'), 'openapi', 'state', '--json')).result.openapi).toBe('3.1.0');
  writeFileSync(
    join(consumer, 'mixed.mjs'),
    `import { z } from 'svc-platform/sdk';
     import { z as own } from 'zod';
     const Inner = own.object({ n: own.number().default(1) }).meta({ description: 'inner' });
     const Outer = z.object({ inner: Inner, list: z.array(Inner) });
     console.log(JSON.stringify([z === own, Outer.parse({ inner: {}, list: [{ n: 2 }] }),
       Outer.safeParse({ inner: { n: 'x' }, list: [] }).error.issues[0].path, z.toJSONSchema(Outer).properties.inner.description]));`,
  );
  expect(JSON.parse(node('mixed.mjs'))).toEqual([
    false,
    { inner: { n: 1 }, list: [{ n: 2 }] },
    ['inner', 'n'],
    'inner',
  ]);
});
