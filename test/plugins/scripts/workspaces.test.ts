import { existsSync } from 'node:fs';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Workspaces } from '../../../src/plugins/scripts/workspaces.ts';
import { tempDir } from '../../support/daemon.ts';
import { nameOfBytes, nestBeyondPaths } from './support/hostile-folders.ts';

test('the folder of a run is removed, whatever a script has put into it', async () => {
  const [dataDir, other] = [await tempDir(), await tempDir()];
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) } as never;
  const workspaces = new Workspaces({ dataDir, logger });
  await writeFile(join(other, 'kept'), '');
  const { folder, files } = await workspaces.open('run_1');
  await nestBeyondPaths(files);
  await writeFile(nameOfBytes(files), '');
  await symlink(other, join(files, 'link'));
  await mkdir(join(files, 'closed/inner'), { recursive: true });
  await writeFile(join(files, 'closed/inner/file'), '');
  for (const path of ['closed/inner', 'closed', '.']) await chmod(join(files, path), 0);
  await workspaces.close('run_1');
  expect(warnings).toEqual([]);
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(join(other, 'kept'))).toBe(true);
});
