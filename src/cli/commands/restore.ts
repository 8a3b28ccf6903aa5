import { existsSync, mkdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { formatBytes } from '../../kit/bytes.ts';
import { PlatformError } from '../../kit/errors.ts';
import { CancelledError, confirm } from '../confirm.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, ok } from '../define-command.ts';
import { dataFolder } from '../supervisor/data-folder.ts';
import { masterKeyInForce } from '../supervisor/master-key.ts';
import type { BackupManifest } from './backup/manifest.ts';
import { requireStopped, swapIn } from './restore/swap.ts';
import { openArchive } from './restore/unpack.ts';
import { keepKeys, requireKnownSchemas, requireSound } from './restore/verify.ts';

interface Restored {
  dataDir: string;
  /** Where the data that was here is kept; null when there was none. */
  former: string | null;
  /** When the backup was made; epoch milliseconds. */
  createdAt: number;
  /** The version that made it. */
  version: string;
  files: number;
  /** Whether the sealed secrets open with the master key that is in force now. */
  secretsOpen: boolean;
}

/** @spec docs/operations.md "Backup and restore" */
export const restore = defineCommand({
  name: 'restore',
  summary: 'Put a backup in the place of the data folder, which is kept aside',
  example: 'svc restore svc-backup.tar.gz --yes',
  args: z.object({ file: z.string().min(1).describe('an archive of svc backup') }),
  async run({ file: given }, context) {
    const folder = context.folder();
    const { root } = folder;
    const file = resolve(context.cwd, given);
    if (!existsSync(file))
      throw new PlatformError('NOT_FOUND', `There is no file ${file}.`, { details: { file } });
    requireStopped(folder, 'restore');
    const archive = await openArchive(file);
    const { manifest } = archive;
    const next = `${root}.restoring-${process.pid}`;
    try {
      requireKnownSchemas(manifest);
      requireRoom(manifest, dirname(root));
      if (existsSync(root)) await agree(manifest, context);
      mkdirSync(next, { recursive: true, mode: 0o700 });
      await archive.unpackTo(next);
      requireSound(next);
      await keepKeys(root, next);
      const secretsOpen = opensSecrets(manifest, next, context);
      const aside = `${root}.before-restore-${timestamp(context.clock.now())}`;
      const former = await swapIn(folder, next, aside);
      const { createdAt, version, files } = manifest;
      return ok<Restored>({ dataDir: root, former, createdAt, version, files: files.length, secretsOpen });
    } finally {
      archive.close();
      rmSync(next, { recursive: true, force: true });
    }
  },
  text: ({ dataDir, former, createdAt, files }: Restored, style) =>
    [
      `${style.green('✓')} ${dataDir} is as it was at ${new Date(createdAt).toISOString()} (${files} files).`,
      ...(former ? [`What was here is kept in ${former}; remove it once all is well.`] : []),
      'Start it: svc up -d',
    ].join('\n'),
});

async function agree({ createdAt, version }: BackupManifest, context: CommandContext): Promise<void> {
  const { root } = context.folder();
  const when = new Date(createdAt).toISOString();
  const question = `Replace ${root} by the backup of ${when} (svc ${version})? What is there is kept aside.`;
  if (!(await confirm(context, question))) throw new CancelledError();
}

function requireRoom({ files }: BackupManifest, parent: string): void {
  const needed = files.reduce((sum, { size }) => sum + size, 0);
  mkdirSync(parent, { recursive: true });
  const { bavail, bsize } = statfsSync(parent);
  if (bavail * bsize >= needed) return;
  throw new PlatformError(
    'STORE_ERROR',
    `The backup unpacks to ${formatBytes(needed)}; ${formatBytes(bavail * bsize)} are free in ${parent}.`,
    { details: { needed, free: bavail * bsize } },
  );
}

/** Says so when what the backup holds sealed will stay sealed. */
function opensSecrets(
  { masterKeyId }: BackupManifest,
  next: string,
  { platform, ui }: CommandContext,
): boolean {
  const inForce = masterKeyInForce(dataFolder(next), platform().env)?.id ?? null;
  if (masterKeyId === null || inForce === masterKeyId) return true;
  ui.warn(
    `The backup's secrets are sealed with master key ${masterKeyId}; in force is ${inForce ?? 'none'}. Set SVC_MASTER_KEY, or put back the keys.json they were made with: until then webhooks cannot be authenticated.`,
  );
  return false;
}

/** `20301231T235959Z`: sorts by time, and needs no quoting. */
const timestamp = (now: number): string => new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
