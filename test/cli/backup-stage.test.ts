import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stageData } from '../../src/cli/commands/backup/stage.ts';
import { integrityOf } from '../../src/plugins/integrity.ts';
import { tempDir } from '../support/daemon.ts';

test('an installed plugin is backed up completely, whatever its file names', async () => {
  const [dataDir, stage] = [await tempDir(), await tempDir()];
  const plugin = join('plugins', 'x', 'node_modules', 'y');
  await mkdir(join(dataDir, plugin), { recursive: true });
  for (const name of ['index.js', 'yarn.lock', 'a.new', 'b.spare', 'c-journal'])
    await writeFile(join(dataDir, plugin, name), name);
  await stageData({ dataDir, stage, withKeys: true, withTelemetry: true, masterKey: () => null });
  expect(await integrityOf(join(stage, 'plugins', 'x'))).toBe(
    await integrityOf(join(dataDir, 'plugins', 'x')),
  );
});
