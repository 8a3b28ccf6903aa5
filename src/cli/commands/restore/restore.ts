import { existsSync, mkdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { formatBytes } from '../../../kit/data/bytes.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { countSealedByKey } from '../../../store/sqlite/snapshot.ts';
import { dataFolder } from '../../../supervisor/data-folder.ts';
import { currentMasterKey } from '../../../supervisor/master-key.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { BackupManifest } from '../backup/manifest.ts';
import { RestoreTarget } from './database.ts';
import { requireStopped, swapIn } from './replace-data.ts';
import { openArchive } from './unpack.ts';
import { keepKeys, requireIntact, requireKnownSchemas } from './verify.ts';

interface Restored {
  dataDir: string;
  /** Path to which the replaced data was moved. Null if no data existed. */
  former: string | null;
  /** Time of the backup, in epoch milliseconds. */
  createdAt: number;
  /** Version of svc that created the backup. */
  version: string;
  files: number;
  /** Host, port and name of the restored PostgreSQL database. Null if the backup has none. */
  database: string | null;
  /** Whether the available master keys can decrypt all secrets in the backup. */
  secretsOpen: boolean;
}

/** @spec docs/operations.md "Backup and restore" */
export const restore = defineCommand({
  name: 'restore',
  summary: 'Replace the data folder with a backup; the old one is kept',
  example: 'svc restore svc-backup.tar.gz --yes',
  args: z.object({ file: z.string().min(1).describe('an archive of svc backup') }),
  async run({ file: given }, context) {
    const folder = context.folder();
    const { root } = folder;
    const file = resolve(context.cwd, given);
    if (!existsSync(file))
      throw new PlatformError('NOT_FOUND', `${file} does not exist.`, { details: { file } });
    requireStopped(folder, 'restore');
    const archive = await openArchive(file);
    const { manifest } = archive;
    const next = `${root}.restoring-${process.pid}`;
    try {
      requireKnownSchemas(manifest);
      const target = await RestoreTarget.of(manifest, context);
      requireRoom(manifest, dirname(root));
      if (existsSync(root)) await confirmReplacement(manifest, context);
      mkdirSync(next, { recursive: true, mode: 0o700 });
      await archive.unpackTo(next);
      requireIntact(next);
      await keepKeys(root, next);
      const secretsOpen = opensSecrets(manifest, next, context);
      const aside = `${root}.before-restore-${timestamp(context.clock.now())}`;
      await target?.fill(next);
      const former = await swapIn(folder, next, aside).catch(async (error: unknown) => {
        await target?.clear();
        throw error;
      });
      const { createdAt, version, files } = manifest;
      return ok<Restored>({
        ...{ dataDir: root, former, createdAt, version, files: files.length, secretsOpen },
        database: target?.server ?? null,
      });
    } finally {
      await archive.close();
      rmSync(next, { recursive: true, force: true });
    }
  },
  text: ({ dataDir, former, createdAt, files, database }: Restored, style) =>
    [
      `${style.green('✓')} Restored ${dataDir} to ${new Date(createdAt).toISOString()} (${files} files).`,
      ...(former ? [`The previous data is in ${former}. Remove it when it is no longer needed.`] : []),
      ...(database
        ? [
            `Restored the database ${database}. The platform does not start on it yet.`,
            'Stop the original platform for good, then run: svc migrate --adopt --yes',
          ]
        : ['Start the platform with: svc up -d']),
    ].join('\n'),
});

async function confirmReplacement(
  { createdAt, version }: BackupManifest,
  context: CommandContext,
): Promise<void> {
  const { root } = context.folder();
  const when = new Date(createdAt).toISOString();
  const question = `Replace ${root} with the backup of ${when} (svc ${version})? The current data is kept in another folder.`;
  if (!(await confirm(context, question))) throw new CancelledError();
}

function requireRoom({ files }: BackupManifest, parent: string): void {
  const needed = files.reduce((sum, { size }) => sum + size, 0);
  mkdirSync(parent, { recursive: true });
  const { bavail, bsize } = statfsSync(parent);
  if (bavail * bsize >= needed) return;
  throw new PlatformError(
    'STORE_ERROR',
    `The backup needs ${formatBytes(needed)}; ${formatBytes(bavail * bsize)} are free in ${parent}.`,
    { details: { needed, free: bavail * bsize } },
  );
}

/**
 * Returns true if the available master keys can decrypt all secrets in the backup. Otherwise, prints a warning and
 * returns false.
 */
function opensSecrets(
  { masterKeyId }: BackupManifest,
  next: string,
  { platform, ui }: CommandContext,
): boolean {
  const keys = currentMasterKey(dataFolder(next), platform().env);
  const known = keys ? [keys.id, ...keys.previous] : [];
  // A backup made during a key rotation contains values encrypted with several master keys.
  const file = join(next, 'svc.db');
  const used = existsSync(file) ? [...countSealedByKey(file).keys()] : [];
  const needed = new Set(masterKeyId === null ? used : [masterKeyId, ...used]);
  const missing = [...needed].filter((id) => !known.includes(id));
  if (missing.length === 0) return true;
  const [noun, these] = missing.length === 1 ? ['key', 'that key'] : ['keys', 'these keys'];
  const remedy =
    missing.length > 1
      ? `set SVC_MASTER_KEY and SVC_MASTER_KEY_PREVIOUS to ${these}`
      : keys
        ? `set SVC_MASTER_KEY_PREVIOUS to ${these} and run svc keys rotate`
        : `set SVC_MASTER_KEY to ${these}`;
  ui.warn(
    `The backup's secrets are encrypted with master ${noun} ${missing.join(', ')}, but the current one is ${keys?.id ?? 'none'}. Restore the matching keys.json, or ${remedy}; until then, webhooks cannot be authenticated.`,
  );
  return false;
}

/** Formats a time as `20301231T235959Z`, which sorts by time and needs no quoting. */
const timestamp = (now: number): string => new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
