import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test, vi } from 'vitest';
import { locate } from '../../../src/kit/process/locate-program.ts';
import { isMachineRoot, userOf } from '../../../src/plugins/sandbox/script-args.ts';
import { requireScriptSandbox } from '../../../src/plugins/scripts/script-sandbox.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';

test('scripts are refused as root if the service cannot switch to another user', async () => {
  const folder = await tempDir();
  await symlink(locate('bwrap', process.env.PATH)!, join(folder, 'bwrap'));
  vi.stubEnv('PATH', folder);
  atEnd(() => vi.unstubAllEnvs());
  const sandbox = requireScriptSandbox('bwrap');
  if (!isMachineRoot()) return expect(await sandbox).toMatchObject({ switchesUser: false });
  await expect(sandbox).rejects.toMatchObject({
    code: 'SANDBOX_ERROR',
    message:
      'Scripts (run:) are not started as root, and switching to another user failed: setpriv (util-linux) is not installed. Run svc as another user, or install setpriv (util-linux).',
  });
  vi.unstubAllEnvs();
  expect(await requireScriptSandbox('bwrap')).toMatchObject({ switchesUser: true });
});

test('the user of a run is the same in all processes and owns no file of a system', () => {
  expect(userOf('run_1')).toBe(userOf('run_1'));
  expect(userOf('run_1')).not.toBe(userOf('run_2'));
  for (const id of ['a', 'b', 'c', 'd']) {
    expect(userOf(id)).toBeGreaterThanOrEqual(1_879_048_192);
    expect(userOf(id)).toBeLessThan(2 ** 31);
  }
});
