import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Workspace } from '../../../src/plugins/scripts/workspace.ts';
import { Workspaces } from '../../../src/plugins/scripts/workspaces.ts';
import { tempDir } from '../../support/daemon.ts';
import { nameOfBytes, nestBeyondPaths } from './support/hostile-folders.ts';

async function startWorkspaces() {
  const dataDir = await tempDir();
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) } as never;
  return { dataDir, warnings, workspaces: new Workspaces({ dataDir, logger }) };
}

test('the folder of a run is removed, whatever a script has put into it', async () => {
  const other = await tempDir();
  const { workspaces, warnings } = await startWorkspaces();
  await writeFile(join(other, 'kept'), '');
  const lease = await workspaces.open('run_1');
  const { folder, files } = lease;
  await nestBeyondPaths(files);
  await writeFile(nameOfBytes(files), '');
  await symlink(other, join(files, 'link'));
  await mkdir(join(files, 'closed/inner'), { recursive: true });
  await writeFile(join(files, 'closed/inner/file'), '');
  for (const path of ['closed/inner', 'closed', '.']) await chmod(join(files, path), 0);
  await lease.release();
  await workspaces.close('run_1');
  expect(warnings).toEqual([]);
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(join(other, 'kept'))).toBe(true);
});

test('the folder of an ended run stays until its last script has ended, and is not made again', async () => {
  const { workspaces, warnings } = await startWorkspaces();
  const [first, second] = [await workspaces.open('run_1'), await workspaces.open('run_1')];
  await workspaces.close('run_1');
  await workspaces.sweep(async () => true);
  await expect(workspaces.open('run_1')).rejects.toThrow('not opened again');
  await first.release();
  expect(existsSync(second.files)).toBe(true);
  await second.release();
  expect(existsSync(second.folder)).toBe(false);
  await expect(workspaces.open('run_1')).rejects.toThrow('not opened again');
  expect(existsSync(second.folder)).toBe(false);
  expect(warnings).toEqual([]);
});

test('a sweep removes the folders of ended and unknown runs, and a later one those that could not be removed', async () => {
  const { workspaces, warnings, dataDir } = await startWorkspaces();
  const folderOf = (runId: string) => join(dataDir, 'workspaces', runId);
  for (const runId of ['ended', 'unknown', 'live'])
    await mkdir(join(folderOf(runId), 'files'), { recursive: true });
  await writeFile(folderOf('blocked'), '');
  await writeFile(folderOf('not.a-run'), '');
  const isOver = async (runId: string) => runId !== 'live';
  await workspaces.sweep(isOver);
  expect(await readdir(join(dataDir, 'workspaces'))).toEqual(['blocked', 'live', 'not.a-run']);
  expect(warnings).toEqual([
    `The working folder ${folderOf('blocked')} of an ended run could not be removed. It is tried again within an hour. If that fails too, remove the folder.`,
  ]);
  await rm(folderOf('blocked'));
  await mkdir(folderOf('blocked'));
  await workspaces.sweep(isOver);
  await workspaces.close('live');
  expect(await readdir(join(dataDir, 'workspaces'))).toEqual(['not.a-run']);
});

test('scripts of a run share one watch of their folder, which ends them all', async () => {
  let watches = 0;
  let over: (what: string) => void = () => {};
  const disk = {
    watch(_roots: unknown, onOver: typeof over) {
      watches++;
      over = onOver;
      return () => void watches--;
    },
  };
  const folder = await tempDir();
  const workspace = new Workspace({ folder, disk, logger: {} as never });
  const ended: string[] = [];
  const stops: Array<() => void> = [];
  for (const name of ['a', 'b', 'c']) {
    const lease = await workspace.open();
    stops.push(lease.watch((what) => ended.push(`${name} ${what}`)));
  }
  expect(watches).toBe(1);
  stops[0]!();
  over('wrote too much');
  expect(ended).toEqual(['b wrote too much', 'c wrote too much']);
  stops[1]!();
  stops[2]!();
  const lease = await workspace.open();
  lease.watch(() => {})();
  // The first watch stopped by itself when the limit was exceeded.
  expect(watches).toBe(1);
});
