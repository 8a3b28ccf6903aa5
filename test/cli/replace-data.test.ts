import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { swapIn } from '../../src/cli/commands/restore/replace-data.ts';
import { dataFolder } from '../../src/supervisor/data-folder.ts';
import { tempDir } from '../support/daemon.ts';

test('restores within one second keep the data of each', async () => {
  const parent = await tempDir();
  const folder = dataFolder(join(parent, '.svc'));
  const aside = `${folder.root}.before-restore-20301231T235959Z`;
  const restore = async (content: string): Promise<string | null> => {
    const next = `${folder.root}.restoring`;
    await mkdir(next, { mode: 0o700 });
    await writeFile(join(next, 'data'), content);
    return swapIn(folder, next, aside);
  };
  const contentOf = (root: string | null) => readFile(join(root!, 'data'), 'utf8');

  expect(await restore('first')).toBeNull();
  const kept = [await restore('second'), await restore('third'), await restore('fourth')];

  expect(kept).toEqual([aside, `${aside}-2`, `${aside}-3`]);
  expect(await Promise.all([...kept, folder.root].map(contentOf))).toEqual([
    'first',
    'second',
    'third',
    'fourth',
  ]);
});
