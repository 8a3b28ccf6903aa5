import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testPlatform, withStandIns } from './platform.ts';

test('reset asks for confirmation, refuses a running platform, and deletes all data', {
  timeout: 60_000,
}, async () => {
  const { svc, dataDir, folder } = await testPlatform(...withStandIns());
  const ownFiles = await readdir(folder);
  expect((await svc('reset', '--yes')).json.result).toEqual({ dataDir, removed: false });
  await svc('up', '-d');
  const running = await svc('reset', '--yes');
  expect([running.code, running.json.error.code]).toEqual([1, 'CONFLICT']);
  const keys = await readFile(join(dataDir, 'keys.json'), 'utf8');
  await svc('down');

  const asked = await svc('reset');
  expect([asked.code, existsSync(join(dataDir, 'keys.json'))]).toEqual([3, true]);
  const { json } = await svc('reset', '--yes');
  expect([json.result.removed, await readdir(folder)]).toEqual([true, ownFiles]);
  await svc('up', '-d');
  expect(await readFile(join(dataDir, 'keys.json'), 'utf8')).not.toBe(keys);
});
