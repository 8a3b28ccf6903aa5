import { expect, test } from 'vitest';
import { readLockFile, writeLockFile } from '../../src/plugins/lock-file.ts';
import { tempDir } from '../support/daemon.ts';

test('fields of a newer version in the list of installed plugins are kept', async () => {
  const folder = await tempDir();
  const entry = {
    ...{ id: 'orders', version: '1.0.0', origin: 'installed', source: 'orders', resolved: 'orders@1.0.0' },
    ...{ folder: 'orders-1', integrity: 'sha512-a', installedAt: '2026-11-23T00:00:00Z', enabled: true },
    ...{ manifestDigest: 'sha256-a', reviewedBy: 'a newer version' },
  };
  const lock = { version: 1, revision: 3, plugins: { orders: entry }, policy: 'of a newer version' };
  await writeLockFile(folder, lock as never);
  const read = await readLockFile(folder);
  expect(read).toEqual(lock);
  await writeLockFile(folder, { ...read, revision: 4 });
  expect(await readLockFile(folder)).toEqual({ ...lock, revision: 4 });
});
