import { execFileSync } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPackageJson } from '../../src/plugins/package-json.ts';
import { manifestModuleOf } from '../../src/plugins/registry/manifest-module.ts';
import { resolveDependencies } from '../../src/plugins/sandbox/dependencies.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

const folderWith = async (text: string) => writeFiles(await tempDir(), { 'package.json': text });

test('what a package.json says is read, as far as it is one', async () => {
  expect(await readPackageJson(await folderWith('{"name": "a"}'))).toEqual({ name: 'a' });
  for (const text of ['[1]', '"text"', 'null', '{"name":', ''])
    expect(await readPackageJson(await folderWith(text))).toBeUndefined();
  expect(await readPackageJson(await tempDir())).toBeUndefined();
});

test('one that would hold a service up is not read at all', async () => {
  const long = ' '.repeat(1024 * 1024);
  const folder = await folderWith(`{"svc": "manifest.js", "dependencies": {"zod": "*"}}${long}`);
  expect(await readPackageJson(folder)).toBeUndefined();
  expect(await manifestModuleOf(folder)).toBeUndefined();
});

test('dependencies that are no list of names are none', async () => {
  for (const dependencies of ['7', '"zod"', '["zod"]', 'null'])
    expect(await resolveDependencies(await folderWith(`{"dependencies": ${dependencies}}`))).toEqual([]);
});

test('a link or a pipe in its place is not read: it would show what it leads to, or hold a service up', async () => {
  const outside = await folderWith('{"svc": "manifest.js", "dependencies": {"zod": "*"}}');
  const linked = await tempDir();
  await symlink(join(outside, 'package.json'), join(linked, 'package.json'));
  expect(await readPackageJson(linked)).toBeUndefined();
  expect(await manifestModuleOf(linked)).toBeUndefined();
  expect(await resolveDependencies(linked)).toEqual([]);
  const piped = await tempDir();
  execFileSync('mkfifo', [join(piped, 'package.json')]);
  expect(await readPackageJson(piped)).toBeUndefined();
});
