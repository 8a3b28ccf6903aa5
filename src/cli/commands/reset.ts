import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { z } from 'zod';
import { usesPostgres } from '../../kit/config/store-url.ts';
import { storeError } from '../../store/sqlite/store-error.ts';
import { CancelledError, confirmByTyping } from '../confirm.ts';
import { defineCommand, ok } from '../define-command.ts';
import { requireStopped, whileStopped } from './restore/replace-data.ts';

interface Reset {
  dataDir: string;
  /** Whether data existed and was removed. */
  removed: boolean;
}

/** @spec docs/operations.md "Starting over" */
export const reset = defineCommand({
  name: 'reset',
  summary: 'Delete all data of this project: keys, secrets, deliveries, runs, state',
  example: 'svc reset',
  args: z.object({}),
  async run(_args, context) {
    const folder = context.folder();
    const { root } = folder;
    requireStopped(folder, 'reset');
    if (!existsSync(root) || readdirSync(root).length === 0)
      return ok<Reset>({ dataDir: root, removed: false });
    const question = `Delete ${root} with its keys and all data? This can only be undone with a backup.`;
    if (usesPostgres(context.platform().config.store))
      context.ui.warn(
        'The PostgreSQL database is kept. Its secrets cannot be decrypted without the keys in this folder.',
      );
    if (!(await confirmByTyping(context, question, basename(root)))) throw new CancelledError();
    // The folder is renamed before the deletion, so that an interrupted reset leaves no half-deleted data folder.
    const removed = `${root}.removing-${process.pid}`;
    await whileStopped(folder, 'reset', () => renameSync(root, removed)).catch((error: unknown) => {
      throw storeError(root, error);
    });
    rmSync(removed, { recursive: true, force: true });
    return ok<Reset>({ dataDir: root, removed: true });
  },
  text: ({ dataDir, removed }: Reset) =>
    removed ? `${dataDir} was deleted. svc up starts with empty data.` : `${dataDir} contains no data.`,
});
