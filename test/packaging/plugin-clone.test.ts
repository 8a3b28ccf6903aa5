import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { createPlugin } from '../support/created-plugin.ts';

/** A plain clone of a project with a plugin: without what `.gitignore` names. */
async function clonedProject() {
  const { project, svc, npm } = await createPlugin('notes');
  const clone = join(project, '..', 'clone');
  await cp(project, clone, { recursive: true, filter: (path) => !path.includes('node_modules') });
  const plugin = join(clone, 'plugins', 'notes');
  return { clone, plugin, svc, npm: (...args: string[]) => npm(plugin, ...args) };
}

test('a plain clone installs without a registry, and its tests pass', { timeout: 300_000 }, async () => {
  const { clone, plugin, svc, npm } = await clonedProject();
  expect(await npm('install')).toMatchObject({ code: 0 });
  const tested = await npm('test');
  expect(tested.output).toContain('3 passed');
  expect(tested.code).toBe(0);
  expect((await npm('run', 'validate')).output).toContain('valid');

  // The archive of another version, or none: what is wrong and what to do is said, and done.
  const archive = join(clone, 'vendor', `svc-platform-${await versionOf(packageRoot)}.tgz`);
  await rm(archive);
  expect((await npm('test')).output).toContain(`${archive} is missing: svc plugins repair ${plugin}`);
  const before = JSON.parse(await readFile(join(plugin, 'package-lock.json'), 'utf8'));
  expect(before.packages).toHaveProperty('node_modules/svc-platform');
  expect(await svc(clone, 'plugins', 'repair', 'plugins/notes')).toMatchObject({ code: 0 });
  const after = JSON.parse(await readFile(join(plugin, 'package-lock.json'), 'utf8'));
  expect(after.packages).not.toHaveProperty('node_modules/svc-platform');
  expect(await npm('install')).toMatchObject({ code: 0 });
  expect((await npm('test')).code).toBe(0);
});

test('an archive of another version is named, and a plugin without one is given it', {
  timeout: 120_000,
}, async () => {
  const { plugin, svc } = await clonedProject();
  const file = join(plugin, 'package.json');
  const { devDependencies: _, ...manifest } = JSON.parse(await readFile(file, 'utf8'));
  const dependsOn = (spec: string) =>
    writeFile(
      file,
      JSON.stringify({ ...manifest, devDependencies: { other: '1.0.0', 'svc-platform': spec } }),
    );
  await dependsOn('file:../../vendor/svc-platform-0.0.1.tgz');
  await writeFile(join(plugin, '../../vendor/svc-platform-0.0.1.tgz'), '');
  const untested = await svc(plugin, 'plugins', 'test', '--json');
  expect(untested.code).not.toBe(0);
  expect(untested.output).toContain('has version 0.0.1, but this is svc');
  expect(untested.output).toContain('svc plugins repair');

  await dependsOn('^0.1.0');
  expect(await svc(plugin, 'plugins', 'repair')).toMatchObject({ code: 0 });
  const { devDependencies } = JSON.parse(await readFile(file, 'utf8'));
  expect(devDependencies).toEqual({
    other: '1.0.0',
    'svc-platform': `file:../../vendor/svc-platform-${await versionOf(packageRoot)}.tgz`,
  });
  expect((await svc(plugin, 'plugins', 'test')).code).toBe(0);
});

async function versionOf(folder: string): Promise<string> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).version;
}
