import { existsSync } from 'node:fs';
import { chmod, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeFolder } from '../../../src/plugins/scripts/remove-folder.ts';
import { tempDir } from '../../support/daemon.ts';

test('a link in place of a folder is not followed when the folder is removed', async () => {
  const [other, parent] = [await tempDir(), await tempDir()];
  await chmod(other, 0o750);
  await writeFile(join(other, 'kept'), '');
  await symlink(other, join(parent, 'link'));
  await expect(removeFolder(join(parent, 'link'))).rejects.toThrow('ENOTDIR');
  expect((await stat(other)).mode & 0o777).toBe(0o750);
  expect(existsSync(join(other, 'kept'))).toBe(true);
});
