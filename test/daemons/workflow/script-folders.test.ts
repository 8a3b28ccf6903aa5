import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/daemon.ts';
import { startScript } from './support/scripts.ts';
import { startWorkflow } from './support/workflow.ts';

test('a service removes the working folders of ended and unknown runs when it starts, not those of live runs', async () => {
  const dataDir = await tempDir();
  const folderOf = (id: string) => join(dataDir, 'workspaces', id);
  const first = await startWorkflow({ dataDir });
  const ended = await startScript(first, [{ id: 'script', run: 'touch kept' }]);
  await first.until(ended, 'succeeded');
  await expect.poll(() => existsSync(folderOf(ended))).toBe(false);
  const live = await startScript(first, [
    { id: 'script', run: 'touch kept' },
    { id: 'ask', uses: 'approval', with: { message: 'Go on?' } },
    { id: 'last', run: 'ls kept' },
  ]);
  await first.until(live, 'waiting');
  await first.close();

  for (const id of [ended, 'unknown']) await mkdir(join(folderOf(id), 'files'), { recursive: true });
  const second = await startWorkflow({ dataDir });
  await expect
    .poll(() => [ended, 'unknown', live].map((id) => existsSync(folderOf(id))))
    .toEqual([false, false, true]);
  await second.services.runs.approve('default', live, 'main.ask', {
    approved: true,
    by: 'ann',
    comment: null,
  });
  await second.until(live, 'succeeded');
  await expect.poll(() => existsSync(folderOf(live))).toBe(false);
});
