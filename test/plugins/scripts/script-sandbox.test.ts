import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test, vi } from 'vitest';
import { loadConfig } from '../../../src/kit/config/config.ts';
import { locate } from '../../../src/kit/process/locate-program.ts';
import { tryStart } from '../../../src/plugins/sandbox/bwrap.ts';
import { asUser, isMachineRoot, scriptArgs, userOf } from '../../../src/plugins/sandbox/script-args.ts';
import { coversOf } from '../../../src/plugins/sandbox/script-covers.ts';
import { requireScriptSandbox } from '../../../src/plugins/scripts/script-sandbox.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';

const isRoot = isMachineRoot();

/** The settings of a project whose data folder is in it. */
function placesOf(projectDir: string): Parameters<typeof requireScriptSandbox>[0] {
  const dataDir = join(projectDir, '.svc');
  const { config } = loadConfig({ cwd: projectDir, env: {} });
  config.execution.worker.sandbox = 'bwrap';
  return { projectDir, dataDir, configFile: null, config, env: { HOME: '/home/svc' } };
}

/** Leaves `bwrap` as the only program in `PATH`. */
async function withoutPrograms(): Promise<string> {
  const folder = await tempDir();
  await symlink(locate('bwrap', process.env.PATH)!, join(folder, 'bwrap'));
  vi.stubEnv('PATH', folder);
  atEnd(() => vi.unstubAllEnvs());
  return folder;
}

test.skipIf(!isRoot)(
  'scripts are refused if root cannot switch to a user (the tests must run as root)',
  async () => {
    const folder = await withoutPrograms();
    await expect(requireScriptSandbox(placesOf(folder))).rejects.toMatchObject({
      code: 'SANDBOX_ERROR',
      message:
        'Scripts (run:) are not started as root, and switching to another user failed: setpriv (util-linux) is not installed. Run svc as another user, or install setpriv (util-linux).',
    });
    vi.unstubAllEnvs();
    expect(await requireScriptSandbox(placesOf(folder))).toMatchObject({ switchesUser: true });
  },
);

test.skipIf(isRoot)('another user than root needs no setpriv (the tests must not run as root)', async () => {
  const folder = await withoutPrograms();
  expect(await requireScriptSandbox(placesOf(folder))).toMatchObject({ switchesUser: false });
});

test('scripts run a Node below /tmp', async () => {
  const folder = await tempDir();
  const node = join(folder, 'bin/node');
  await mkdir(join(folder, 'bin'));
  await copyFile(process.execPath, node);
  const paths = { folder, home: folder, script: join(folder, 'script'), output: join(folder, 'output') };
  for (const path of [paths.script, paths.output]) await writeFile(path, '');
  const { bwrap, switchesUser } = await requireScriptSandbox(placesOf(folder));
  const original = process.execPath;
  process.execPath = node;
  atEnd(() => (process.execPath = original));
  const args = scriptArgs(bwrap, { paths, env: {}, network: false, covers: [], switchesUser });
  const own = args.filter((option, index) => ![option, args[index - 1]].includes('--json-status-fd'));
  const user = switchesUser ? asUser(userOf('run_1')) : [];
  expect(await tryStart([...own, '--', ...user, node, '-e', '0'], {})).toBeUndefined();
});

test('the user of a run is the same in all processes and owns no file of a system', () => {
  expect(userOf('run_1')).toBe(userOf('run_1'));
  expect(userOf('run_1')).not.toBe(userOf('run_2'));
  for (const id of ['a', 'b', 'c', 'd']) {
    expect(userOf(id)).toBeGreaterThanOrEqual(1_879_048_192);
    expect(userOf(id)).toBeLessThan(2 ** 31);
  }
});

test('a project inside of a system folder is covered, unless that would hide programs', async () => {
  const system = await tempDir();
  const [project, elsewhere] = [join(system, 'src/app'), join(system, 'app.json')];
  await mkdir(join(project, '.svc'), { recursive: true });
  await writeFile(elsewhere, '{}');
  await symlink(project, join(system, 'link'));
  const places = placesOf(project);
  expect(await coversOf(places, [system])).toEqual(['--tmpfs', project, '--remount-ro', project]);
  expect(await coversOf({ ...places, projectDir: join(system, 'link') }, [system])).toContain(project);
  expect(await coversOf({ ...places, configFile: elsewhere }, [system])).toEqual([
    ...['--tmpfs', project, '--remount-ro', project],
    ...['--ro-bind', '/dev/null', elsewhere],
  ]);
  expect(await coversOf(places, [join(system, 'src/app-other'), '/usr'])).toEqual([]);
  for (const path of ['/usr', '/usr/bin', '/usr/lib'])
    await expect(requireScriptSandbox({ ...places, projectDir: path })).rejects.toMatchObject({
      code: 'SANDBOX_ERROR',
      message: expect.stringContaining(`Scripts (run:) could read ${path}, which belongs to the platform`),
    });
});
