import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Finding } from '../../src/cli/commands/doctor/check.ts';
import { version } from '../../src/kit/files/paths.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

const SLOW = { timeout: 120_000 };

/** A project as `svc init` makes it. */
async function initialized(...flags: string[]): Promise<string> {
  const folder = await tempDir();
  expect(await runSvc(folder, ['init', '--json', ...flags])).toMatchObject({ code: 0 });
  return folder;
}

async function vendorFindings(folder: string, ...flags: string[]): Promise<Array<Omit<Finding, 'name'>>> {
  const { json } = await runSvc(folder, ['doctor', '--json', ...flags]);
  return json.result.checks
    .filter(({ name }: Finding) => name === 'vendor')
    .map(({ name: _, ...finding }: Finding) => finding);
}

test('svc doctor names an archive that a clone cannot install, and the repair command', SLOW, async () => {
  const folder = await initialized('--plugin', 'rest');
  const plugin = join(folder, 'plugins/my-rest');
  const archive = join(folder, `vendor/svc-platform-${version}.tgz`);
  const findings = () => vendorFindings(folder);
  const faulty = (what: string) => [
    {
      status: 'warn',
      message: expect.stringContaining(`npm install and the tests of ${plugin} fail: ${what}`),
      remedy: 'svc plugins repair plugins/my-rest, then commit vendor/ and package.json',
      fixed: false,
    },
  ];
  expect(await findings()).toMatchObject([{ status: 'ok' }]);

  const digest = createHash('sha512').update('the archive of another build').digest('base64');
  const lock = { packages: { 'node_modules/svc-platform': { integrity: `sha512-${digest}` } } };
  await writeFile(join(plugin, 'package-lock.json'), JSON.stringify(lock));
  expect(await findings()).toMatchObject(faulty(`${archive} does not match the digest in package-lock.json`));
  await rm(join(plugin, 'package-lock.json'));

  await truncate(archive, 1_000_000);
  expect(await findings()).toMatchObject(faulty(`${archive} is damaged`));
  await rm(archive);
  expect(await findings()).toMatchObject(faulty(`${archive} is missing`));
  expect((await runSvc(folder, ['plugins', 'repair', 'plugins/my-rest'])).code).toBe(0);
  expect(await findings()).toMatchObject([{ status: 'ok' }]);
});

test('svc doctor --fix sets the config schema to a path that every clone has', SLOW, async () => {
  const folder = await initialized('--plugin', 'none');
  const config = join(folder, 'svc.config.json');
  const written = await readFile(config, 'utf8');
  const schema = join(folder, 'vendor/svc.schema.json');
  await writeFile(config, written.replace('./vendor/', '../../opt/svc/config/'));
  await writeFile(schema, '{}');
  expect(await vendorFindings(folder)).toMatchObject([
    { status: 'warn', message: 'vendor/svc.schema.json does not match this version of svc.' },
    {
      status: 'warn',
      message: expect.stringContaining('(../../opt/svc/config/svc.schema.json) is outside'),
    },
  ]);
  expect(await vendorFindings(folder, '--fix')).toMatchObject([{ fixed: true }, { fixed: true }]);
  expect(await readFile(config, 'utf8')).toBe(written);
  expect(JSON.parse(await readFile(schema, 'utf8')).title).toBe('svc.config.json');
  expect(await vendorFindings(folder)).toMatchObject([{ status: 'ok' }]);

  await rm(schema);
  expect(await vendorFindings(folder)).toMatchObject([
    { status: 'warn', message: expect.stringContaining('(./vendor/svc.schema.json) does not exist') },
  ]);
  expect(await vendorFindings(folder, '--fix')).toMatchObject([{ fixed: true }]);
  await writeFile(config, written.replace('./vendor/svc.schema.json', 'https://example.com/svc.schema.json'));
  expect(await vendorFindings(folder)).toMatchObject([{ status: 'ok' }]);
});

/** The schema that the first line of a workflow file names, and the definition. */
async function openedInEditor(file: string) {
  const text = await readFile(file, 'utf8');
  const path = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1];
  return {
    schema: JSON.parse(await readFile(resolve(dirname(file), path!), 'utf8')),
    definition: parse(text),
  };
}

test('new workflow files are valid and name the schema for editors', SLOW, async () => {
  const folder = await initialized('--plugin', 'workflow');
  const made = join(folder, 'workflows/hello.yaml');
  const created = await runSvc(folder, ['workflows', 'create', '@acme/nightly', '--json']);
  expect(created.json).toMatchObject({
    ok: true,
    result: { id: '@acme/nightly', file: join(folder, 'workflows/nightly.yaml') },
  });
  await mkdir(join(folder, 'elsewhere'));
  const elsewhere = await runSvc(folder, ['workflows', 'create', 'late', '--file', 'elsewhere/late.yaml']);
  expect([elsewhere.code, elsewhere.stderr]).toEqual([
    0,
    expect.stringContaining('No pattern in "workflows"'),
  ]);
  for (const file of [made, join(folder, 'workflows/nightly.yaml'), join(folder, 'elsewhere/late.yaml')]) {
    const { schema, definition } = await openedInEditor(file);
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(definition)));
    expect((await runSvc(folder, ['workflows', 'validate', file])).code).toBe(0);
  }
  expect((await runSvc(folder, ['workflows', 'create', 'nightly', '--json'])).json.error.code).toBe(
    'CONFLICT',
  );
});

test('a workflow file can be created outside a project', SLOW, async () => {
  const folder = await tempDir();
  expect((await runSvc(folder, ['workflows', 'create', 'hello'])).code).toBe(0);
  expect((await openedInEditor(join(folder, 'workflows/hello.yaml'))).definition.id).toBe('hello');
});
