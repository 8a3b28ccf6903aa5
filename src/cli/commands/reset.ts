import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { z } from 'zod';
import { storeError } from '../../store/sqlite/store-error.ts';
import { CancelledError, confirmByTyping } from '../confirm.ts';
import { defineCommand, ok } from '../define-command.ts';
import { requireStopped, whileStopped } from './restore/swap.ts';

interface Reset {
  dataDir: string;
  /** False when there was nothing. */
  removed: boolean;
}

/** @spec docs/operations.md "Starting over" */
export const reset = defineCommand({
  name: 'reset',
  summary: 'Remove all data of this project: keys, secrets, deliveries, runs, state',
  example: 'svc reset',
  args: z.object({}),
  async run(_args, context) {
    const folder = context.folder();
    const { root } = folder;
    requireStopped(folder, 'reset');
    if (!existsSync(root) || readdirSync(root).length === 0)
      return ok<Reset>({ dataDir: root, removed: false });
    const question = `Remove ${root}, with its keys and everything kept in it? There is no way back but a backup.`;
    if (!(await confirmByTyping(context, question, basename(root)))) throw new CancelledError();
    // Moved away first: what is removed halfway must not be taken for data.
    const doomed = `${root}.removing-${process.pid}`;
    await whileStopped(folder, 'reset', () => renameSync(root, doomed)).catch((error: unknown) => {
      throw storeError(root, error);
    });
    rmSync(doomed, { recursive: true, force: true });
    return ok<Reset>({ dataDir: root, removed: true });
  },
  text: ({ dataDir, removed }: Reset) =>
    removed ? `${dataDir} is gone. svc up begins anew.` : `There is no data in ${dataDir}.`,
});
