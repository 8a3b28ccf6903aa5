import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildPrograms } from '../../src/cli/vendor/build-programs.ts';
import { tempDir } from '../support/daemon.ts';

test('contain the chunks of imports with each kind of quote, and none of older builds', async () => {
  const dist = await tempDir();
  const files = {
    'cli.js': 'import{a}from"./chunks/double.js";const b=()=>import(`./chunks/backtick.js`);',
    'sdk.js': "export * from './chunks/single.js';",
    'chunks/double.js': 'export const a=1;',
    'chunks/single.js': 'export const c=()=>import(`./nested.js`);',
    'chunks/backtick.js': 'import"../sdk.js";',
    'chunks/nested.js': '',
    'chunks/older.js': 'import"./double.js";',
  };
  await mkdir(join(dist, 'chunks'));
  for (const [path, source] of Object.entries(files)) await writeFile(join(dist, path), source);
  const { 'chunks/older.js': _, ...current } = files;
  expect(buildPrograms(dist)).toEqual(Object.keys(current).sort());
});
