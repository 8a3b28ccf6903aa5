import { execFile } from 'node:child_process';
import { readdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { resolveGrants } from '../../src/plugins/sandbox/grants.ts';
import { tempDir } from '../support/daemon.ts';
import { runPluginTests } from '../support/plugin-tests.ts';
import { userEnvironment } from '../support/user-environment.ts';
import { PROGRAM } from './platform.ts';
import { runSvc } from './svc.ts';

const svc = async (cwd: string, ...args: string[]) => {
  const { code, json } = await runSvc(cwd, [...args, '--json']);
  return { code, envelope: json };
};

test.each(['rest', 'webhook', 'workflow', 'command'])(
  'a plugin created from template %s is valid, and its own tests pass at once',
  { timeout: 120_000 },
  async (template) => {
    const cwd = await realpath(await tempDir());
    const folder = join(cwd, 'plugins/orders');
    const made = await svc(cwd, 'plugins', 'create', '@acme/orders', '--template', template);
    expect(made).toMatchObject({
      code: 0,
      envelope: { ok: true, result: { id: '@acme/orders', folder, template } },
    });
    expect(await realpath(join(folder, 'node_modules/svc-platform/package.json'))).toBe(
      join(packageRoot, 'package.json'),
    );
    expect(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).scripts.test).toBe(
      'svc plugins test',
    );

    expect(await svc(cwd, 'plugins', 'validate', folder)).toMatchObject({
      code: 0,
      envelope: { ok: true, result: { id: '@acme/orders' } },
    });
    expect((await svc(folder, 'plugins', 'validate')).code).toBe(0);
    expect(await realpath(join(folder, 'node_modules/.bin/svc'))).toBe(join(packageRoot, 'bin/svc'));
    const tested = await runPluginTests(folder);
    expect(tested.stdout).toMatch(/# pass [1-9]/);
    expect(tested, tested.stdout).toMatchObject({ code: 0 });
  },
);

test('a new plugin may run in a repository clone that is also a project with data', async () => {
  const cwd = await realpath(await tempDir());
  await svc(cwd, 'plugins', 'create', 'orders');
  const root = join(cwd, 'plugins/orders');
  const permissions = { network: [], env: [], invoke: [] };
  const grants = () => resolveGrants({ root, permissions, dataDir: join(packageRoot, '.svc') });
  expect((await grants()).read).not.toContain(packageRoot);
  await symlink(packageRoot, join(root, 'whole'));
  await expect(grants()).rejects.toMatchObject({ code: 'SANDBOX_ERROR' });
});

test('two plugins of one template coexist, and the next steps are given relative to the working directory', async () => {
  const cwd = await tempDir();
  const commands = async (id: string, template: string) => {
    const folder = `my plugins/${id}`;
    const { stderr } = await runSvc(cwd, [
      'plugins',
      'create',
      id,
      '--template',
      template,
      '--folder',
      folder,
    ]);
    expect(stderr).toContain(`Next: (cd 'my plugins/${id}' && npm test)\n`);
    expect(stderr).toContain(`svc plugins dev 'my plugins/${id}'\n`);
    const manifest = JSON.parse(await readFile(join(cwd, folder, 'svc.plugin.json'), 'utf8'));
    return manifest.commands.map((command: { id: string }) => command.id);
  };
  for (const template of ['command', 'webhook'])
    expect(await commands(`a-${template}`, template)).not.toEqual(await commands(`b-${template}`, template));
});

test('a non-empty folder is left unchanged', async () => {
  const cwd = await tempDir();
  expect((await svc(cwd, 'plugins', 'create', 'orders')).code).toBe(0);
  expect(await svc(cwd, 'plugins', 'create', 'orders')).toMatchObject({
    code: 1,
    envelope: { ok: false, error: { code: 'CONFLICT' } },
  });
  expect((await svc(cwd, 'plugins', 'create', 'Orders!')).code).toBe(2);
  expect((await svc(cwd, 'plugins', 'create', 'x', '--template', 'none')).code).toBe(2);
});

test('a failed write leaves no files', async () => {
  const cwd = await tempDir();
  await writeFile(join(cwd, 'file'), '');
  const error = { code: 'STORE_ERROR', details: { hint: expect.stringContaining('--folder') } };
  expect(await svc(cwd, 'plugins', 'create', 'orders', '--folder', 'file/orders')).toMatchObject({
    code: 1,
    envelope: { ok: false, error },
  });
  // A limit on the size of files takes the place of a disk that fills in the midst.
  const program = PROGRAM.map((word) => `'${word}'`).join(' ');
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-c', `trap '' XFSZ; ulimit -f 0; ${program} plugins create orders --json | cat`],
    { cwd, env: userEnvironment() },
  );
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, error });
  expect(await readdir(cwd)).toEqual(['file']);
});

test('validation reports every fault and fails', async () => {
  const cwd = await tempDir();
  expect(await svc(cwd, 'plugins', 'validate', 'absent')).toMatchObject({
    code: 1,
    envelope: { ok: false, error: { code: 'INVALID_MANIFEST', details: { faults: [expect.anything()] } } },
  });
});
