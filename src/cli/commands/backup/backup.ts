import { existsSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { formatBytes } from '../../../kit/data/bytes.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { version } from '../../../kit/files/paths.ts';
import { DATA_FILES } from '../../../store/sqlite/data-files.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import { currentMasterKey } from '../../../supervisor/master-key.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import { writeArchive } from './archive.ts';
import { type BackedUpDatabase, databaseText, describeDatabase, stageDatabase } from './database.ts';
import { type BackupManifest, FORMAT, FORMAT_WITHOUT_DATABASE } from './manifest.ts';
import { stageData } from './stage.ts';
import { makeStage } from './stage-folder.ts';

interface BackedUp {
  file: string;
  bytes: number;
  /** Time of the backup, in epoch milliseconds. The backup contains all data that was acknowledged before this time. */
  createdAt: number;
  files: number;
  databases: string[];
  /** The PostgreSQL database. Null for SQLite. */
  database: BackedUpDatabase | null;
  /** Whether the backup includes keys.json and credentials.json. */
  withKeys: boolean;
  /** Paths of links and devices, which a backup does not include. */
  skipped: string[];
}

/** @spec docs/operations.md "Backup and restore" */
export const backup = defineCommand({
  name: 'backup',
  summary: 'Back up the data folder to an archive, even while the platform is running',
  example: 'svc backup svc-backup.tar.gz',
  args: z.object({
    file: z.string().min(1).describe('the archive to write (.tar.gz)'),
    withoutKeys: z.boolean().default(false).describe('exclude keys.json and credentials.json'),
    withoutTelemetry: z.boolean().default(false).describe('exclude log records and analytics events'),
    withDatabase: z.boolean().default(false).describe('include the PostgreSQL database, with pg_dump'),
    force: z.boolean().default(false).describe('overwrite an existing file'),
  }),
  async run({ file: given, withoutKeys, withoutTelemetry, withDatabase, force }, context) {
    const folder = context.folder();
    const file = resolve(context.cwd, given);
    requireData(folder);
    requireTarget(file, folder, force);
    requireRoom(folder);
    const { config, env } = context.platform();
    const url = postgresUrlOf(config.store, env);
    requireDatabase(url, withDatabase);
    const stage = makeStage(folder);
    try {
      const createdAt = context.clock.now();
      const keyBefore = currentMasterKey(folder, env);
      const database =
        url !== null && withDatabase
          ? await stageDatabase(url, stage, { withTelemetry: !withoutTelemetry, env: context.env })
          : null;
      const { files, schemas, masterKey, skipped } = await stageData({
        dataDir: folder.root,
        stage,
        withKeys: !withoutKeys,
        withTelemetry: !withoutTelemetry,
        masterKey: () => currentMasterKey(folder, env),
      });
      if (database && !isDeepStrictEqual(keyBefore, masterKey)) throw keyChanged();
      const manifest: BackupManifest = {
        format: database ? FORMAT : FORMAT_WITHOUT_DATABASE,
        createdAt,
        version,
        schemas,
        masterKeyId: masterKey?.id ?? null,
        database,
        files,
      };
      await writeArchive(file, manifest, stage);
      warnOfKeys(context, { withoutKeys, keyFromEnvironment: masterKey?.from === 'environment' });
      return ok<BackedUp>({
        file,
        bytes: statSync(file).size,
        createdAt,
        files: files.length,
        databases: Object.keys(schemas),
        database: url === null ? null : describeDatabase(url, withDatabase),
        withKeys: !withoutKeys,
        skipped,
      });
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
  },
  text: ({ file, bytes, files, database, skipped }: BackedUp, style) =>
    [
      `${style.green('✓')} ${file}: ${files} files, ${formatBytes(bytes)}.`,
      ...databaseText(database, style),
      ...skipped.map((name) => `${style.yellow('!')} skipped, not a regular file: ${name}`),
      `Restore it with: svc restore ${shellWord(file)}`,
    ].join('\n'),
});

function requireData({ root }: DataFolder): void {
  if (existsSync(root)) return;
  throw new PlatformError('NOT_FOUND', `Data folder ${root} does not exist.`, {
    details: {
      dataDir: root,
      hint: 'The first `svc up` creates it. SVC_HOME or --config select another folder.',
    },
  });
}

/** Throws VALIDATION_ERROR if the database is to be included, but the store is SQLite, which is always included. */
function requireDatabase(url: string | null, withDatabase: boolean): void {
  if (!withDatabase || url !== null) return;
  throw new PlatformError('VALIDATION_ERROR', '--with-database is for PostgreSQL; the store is SQLite.', {
    details: { hint: 'Leave it out. The backup contains every SQLite database.' },
  });
}

function keyChanged(): PlatformError {
  return new PlatformError('CONFLICT', 'The master key changed during the backup. No archive was written.', {
    details: { hint: 'Wait until svc keys rotate has ended, and run svc backup again.' },
  });
}

function requireTarget(file: string, { root }: DataFolder, force: boolean): void {
  if (file.startsWith(root + sep)) {
    throw new PlatformError('CONFLICT', `${file} is inside the data folder.`, {
      details: { file, hint: 'Choose a file outside the data folder, preferably on another disk.' },
    });
  }
  if (existsSync(file) && !force) {
    throw new PlatformError('CONFLICT', `${file} already exists.`, {
      details: { file, hint: 'Choose another name, or overwrite it with --force.' },
    });
  }
  if (existsSync(dirname(file))) return;
  throw new PlatformError('STORE_ERROR', `Folder ${dirname(file)} does not exist.`, { details: { file } });
}

/** Throws STORE_ERROR if the disk has too little space for temporary copies of all databases. */
function requireRoom({ root }: DataFolder): void {
  const sizes = DATA_FILES.map(
    ({ name }) => statSync(join(root, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  const needed = sizes.reduce((sum, size) => sum + size, 0);
  const { bavail, bsize } = statfsSync(root);
  if (bavail * bsize >= needed) return;
  throw new PlatformError(
    'STORE_ERROR',
    `A backup temporarily needs ${formatBytes(needed)} on the disk of ${root}; ${formatBytes(bavail * bsize)} are free.`,
    { details: { needed, free: bavail * bsize, hint: '--without-telemetry needs less.' } },
  );
}

function warnOfKeys(
  { ui }: CommandContext,
  { withoutKeys, keyFromEnvironment }: { withoutKeys: boolean; keyFromEnvironment: boolean },
): void {
  if (keyFromEnvironment)
    ui.warn('The backup does not contain SVC_MASTER_KEY, which is needed to decrypt its secrets.');
  else if (withoutKeys)
    ui.warn('The backup does not contain keys.json, which is needed to decrypt its secrets.');
  else ui.warn("The backup contains the platform's keys. Protect it like the data folder.");
}
