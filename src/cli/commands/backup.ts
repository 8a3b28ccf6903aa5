import { existsSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { z } from 'zod';
import { formatBytes } from '../../kit/bytes.ts';
import { PlatformError } from '../../kit/errors.ts';
import { version } from '../../kit/paths.ts';
import { DATA_FILES } from '../../store/sqlite/data-files.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, ok } from '../define-command.ts';
import { shellWord } from '../shell-word.ts';
import type { DataFolder } from '../supervisor/data-folder.ts';
import { masterKeyInForce } from '../supervisor/master-key.ts';
import { writeArchive } from './backup/archive.ts';
import { type BackupManifest, FORMAT } from './backup/manifest.ts';
import { stageData } from './backup/stage.ts';
import { makeStage } from './backup/stage-folder.ts';

interface BackedUp {
  file: string;
  bytes: number;
  /** Everything acknowledged before is inside; epoch milliseconds. */
  createdAt: number;
  files: number;
  databases: string[];
  /** Whether keys.json and credentials.json are inside. */
  withKeys: boolean;
  /** Links and devices of the data folder, which are left out. */
  skipped: string[];
}

/** @spec docs/operations.md "Backup and restore" */
export const backup = defineCommand({
  name: 'backup',
  summary: 'Copy the data folder into an archive, also while the platform runs',
  example: 'svc backup svc-backup.tar.gz',
  args: z.object({
    file: z.string().min(1).describe('the archive to write (.tar.gz)'),
    withoutKeys: z.boolean().default(false).describe('leave keys.json and credentials.json out'),
    withoutTelemetry: z.boolean().default(false).describe('leave log records and analytics events out'),
    force: z.boolean().default(false).describe('replace a file that is there'),
  }),
  async run({ file: given, withoutKeys, withoutTelemetry, force }, context) {
    const folder = context.folder();
    const file = resolve(context.cwd, given);
    requireData(folder);
    requireTarget(file, folder, force);
    requireRoom(folder);
    const masterKey = masterKeyInForce(folder, context.platform().env);
    const stage = makeStage(folder);
    try {
      const createdAt = context.clock.now();
      const { files, schemas, skipped } = await stageData({
        dataDir: folder.root,
        stage,
        withKeys: !withoutKeys,
        withTelemetry: !withoutTelemetry,
      });
      const manifest: BackupManifest = {
        format: FORMAT,
        createdAt,
        version,
        schemas,
        masterKeyId: masterKey?.id ?? null,
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
        withKeys: !withoutKeys,
        skipped,
      });
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
  },
  text: ({ file, bytes, files, skipped }: BackedUp, style) =>
    [
      `${style.green('✓')} ${file}: ${files} files, ${formatBytes(bytes)}.`,
      ...skipped.map((name) => `${style.yellow('!')} left out, as it is no file: ${name}`),
      `Put it back with: svc restore ${shellWord(file)}`,
    ].join('\n'),
});

function requireData({ root }: DataFolder): void {
  if (existsSync(root)) return;
  throw new PlatformError('NOT_FOUND', `There is no data in ${root} yet.`, {
    details: {
      dataDir: root,
      hint: 'It comes with the first `svc up`; SVC_HOME or --config name another one.',
    },
  });
}

function requireTarget(file: string, { root }: DataFolder, force: boolean): void {
  if (file.startsWith(root + sep)) {
    throw new PlatformError('CONFLICT', `${file} is inside of what it is to hold.`, {
      details: { file, hint: 'Choose a file outside of the data folder, on another disk if there is one.' },
    });
  }
  if (existsSync(file) && !force) {
    throw new PlatformError('CONFLICT', `${file} is there already.`, {
      details: { file, hint: 'Choose another name, or replace it with --force.' },
    });
  }
  if (existsSync(dirname(file))) return;
  throw new PlatformError('STORE_ERROR', `There is no folder ${dirname(file)}.`, { details: { file } });
}

/** The copies of the databases need as much room as they take now. */
function requireRoom({ root }: DataFolder): void {
  const sizes = DATA_FILES.map(
    ({ name }) => statSync(join(root, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  const needed = sizes.reduce((sum, size) => sum + size, 0);
  const { bavail, bsize } = statfsSync(root);
  if (bavail * bsize >= needed) return;
  throw new PlatformError(
    'STORE_ERROR',
    `A backup needs ${formatBytes(needed)} beside the data in ${root} for a moment; ${formatBytes(bavail * bsize)} are free.`,
    { details: { needed, free: bavail * bsize, hint: '--without-telemetry needs less.' } },
  );
}

function warnOfKeys(
  { ui }: CommandContext,
  { withoutKeys, keyFromEnvironment }: { withoutKeys: boolean; keyFromEnvironment: boolean },
): void {
  if (keyFromEnvironment) ui.warn('SVC_MASTER_KEY is not inside; without it no secret of this backup opens.');
  else if (withoutKeys) ui.warn('keys.json is not inside; without it no secret of this backup opens.');
  else ui.warn("It holds the platform's keys: keep it as private as the data folder.");
}
