import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { PACKAGE_SCOPE, packageObjects } from '../../../daemons/plugin-runtime/shared/packages.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { integrityOf, pluginsFolder, readLockFile } from '../../../plugins/index.ts';
import { copyStore, type StoreCopied } from '../../../store/copy/copy-store.ts';
import type { PluginSource } from '../../../store/copy/plugins.ts';
import { CopySource, FILES, prepareSource } from '../../../store/copy/source.ts';
import { acquireOwnerLock } from '../../../store/sqlite/owner-lock.ts';
import { TELEMETRY_FILE } from '../../../store/sqlite/telemetry/store.ts';
import { dataFolder } from '../../../supervisor/data-folder.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { requireStopped, whileStopped } from '../restore/replace-data.ts';

const OPERATION = 'copy';
/**
 * Databases that are locked during the copy. All of these databases are locked, because a service that runs without a
 * supervisor locks only its own database.
 */
const OWNED_FILES = ['svc.db', 'workflow.db', 'state.db'];

interface CopyFolderOptions {
  dataDir: string;
  url: string;
  withoutTelemetry: boolean;
}

interface Copied extends StoreCopied {
  /** Path of the copied data folder. The copy leaves this folder unchanged. */
  dataDir: string;
  rows: number;
  durationMs: number;
  /** Databases in the data folder that were not copied. */
  left: string[];
}

/** @spec docs/operations.md "Move to PostgreSQL" */
export const copy = defineCommand({
  name: 'store copy',
  summary: 'Copy the data of a stopped platform to an empty PostgreSQL database',
  example: 'svc store copy .svc postgres://svc@db.internal/svc',
  args: z.object({
    folder: z.string().min(1).describe('the data folder'),
    url: z
      .string()
      .refine(
        (text) => /^postgres(?:ql)?:\/\/[^/]/.test(text) && URL.canParse(text),
        'must have the form postgres://<user>@<host>/<database>',
      )
      .describe('the database; PGPASSWORD gives its password'),
    withoutTelemetry: z.boolean().default(false).describe('exclude log records and analytics events'),
  }),
  async run({ folder: given, url, withoutTelemetry }, context) {
    const folder = dataFolder(resolve(context.cwd, given));
    if (!existsSync(join(folder.root, 'svc.db')))
      throw new PlatformError('NOT_FOUND', `${folder.root} has no platform data.`, {
        details: { hint: 'Name the data folder, such as .svc in the project.' },
      });
    requireStopped(folder, OPERATION);
    return ok<Copied>(
      await whileStopped(folder, OPERATION, async () => {
        const locks = new DisposableStack();
        try {
          for (const name of OWNED_FILES) {
            const lock = { file: join(folder.root, name), waitMs: 0, label: OPERATION };
            locks.adopt(await acquireOwnerLock(lock), (held) => held.release());
          }
          return await copyFolder({ dataDir: folder.root, url, withoutTelemetry }, context);
        } finally {
          locks.dispose();
        }
      }),
    );
  },
  text: ({ dataDir, server, rows, durationMs, left }: Copied, style) =>
    [
      `${style.green('✓')} Copied ${rows} rows of ${dataDir} to ${server} in ${formatDuration(durationMs)}.`,
      ...(left.length > 0 ? [`Not copied, as they stay in the data folder: ${left.join(', ')}.`] : []),
      'Set store.url to the database, keep keys.json and credentials.json, and run: svc up -d',
    ].join('\n'),
});

async function copyFolder(
  { dataDir, url, withoutTelemetry }: CopyFolderOptions,
  { clock, ui }: CommandContext,
): Promise<Copied> {
  const startedAt = clock.monotonic();
  await prepareSource(dataDir, { clock, logger: silentLogger });
  const files = FILES.filter((name) => !(withoutTelemetry && name === TELEMETRY_FILE));
  const source = new CopySource(dataDir, files);
  try {
    const copied = await copyStore({
      ...{ source, url, now: clock.now(), plugins: await installedPlugins(dataDir) },
      onTable: ({ table, rows }) => ui.note(`${table}: ${rows}`),
    });
    return {
      ...copied,
      dataDir,
      rows: copied.tables.reduce((sum, { rows }) => sum + rows, 0),
      durationMs: Math.round(clock.monotonic() - startedAt),
      left: withoutTelemetry && existsSync(join(dataDir, TELEMETRY_FILE)) ? [TELEMETRY_FILE] : [],
    };
  } finally {
    source.close();
  }
}

/** Returns the installed plugins. Throws INTEGRITY_MISMATCH if the files of a plugin were changed. */
async function installedPlugins(dataDir: string): Promise<PluginSource> {
  const lock = await readLockFile(dataDir);
  const packages = Object.values(lock.plugins).flatMap(({ id, folder, integrity }) =>
    integrity === null ? [] : [{ id, integrity, path: join(pluginsFolder(dataDir), folder) }],
  );
  for (const { id, integrity, path } of packages) {
    if ((await integrityOf(path).catch(() => undefined)) === integrity) continue;
    throw new PlatformError(
      'INTEGRITY_MISMATCH',
      `The files of the plugin ${id} were changed or are missing.`,
      {
        details: {
          pluginId: id,
          hint: 'Start the platform, install the plugin again or uninstall it, and copy then.',
        },
      },
    );
  }
  return {
    lock,
    scope: PACKAGE_SCOPE,
    async *objects() {
      for (const { path, integrity } of packages) yield* packageObjects(path, integrity);
    },
  };
}
