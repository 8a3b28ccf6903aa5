import { z } from 'zod';

/**
 * A backup archive contains the manifest, then the data folder under `data/`.
 * @spec docs/operations.md "Backup and restore"
 */
export const MANIFEST_NAME = 'manifest.json';
export const DATA_PREFIX = 'data/';
/** Newest format that this version reads. */
export const FORMAT = 2;
/** Format of archives without a dump, which older versions can read. */
export const FORMAT_WITHOUT_DATABASE = 1;
/** File in the archive with the dump of the PostgreSQL database. */
export const DUMP_FILE = 'postgres.dump';

/** Files with the platform's secrets, which are required to decrypt values in `svc.db`. */
export const KEY_FILES: readonly string[] = ['keys.json', 'credentials.json'];

const BackupFile = z.object({
  /** Path of the file relative to the data folder, with slashes. */
  name: z.string().min(1).max(4096),
  size: z.number().int().nonnegative(),
  sha256: z.string().length(64),
  mode: z.number().int(),
});
export type BackupFile = z.infer<typeof BackupFile>;

const DumpedDatabase = z.object({
  /** Host, port and database without credentials. */
  server: z.string(),
  schema: z.number().int(),
});
export type DumpedDatabase = z.infer<typeof DumpedDatabase>;

export const BackupManifest = z.object({
  /** Format version of the archive. Archives of newer formats are rejected. */
  format: z.number().int(),
  /** Time of the backup, in epoch milliseconds. The backup contains all data that was acknowledged before this time. */
  createdAt: z.number(),
  version: z.string(),
  /** Number of applied migrations of each database. */
  schemas: z.record(z.string(), z.number().int()),
  /** Id of the master key that encrypted the secrets. Null if no master key existed. */
  masterKeyId: z.string().nullable(),
  /** The PostgreSQL database in `DUMP_FILE`. Null if the backup has no such file. */
  database: DumpedDatabase.nullable().default(null),
  files: z.array(BackupFile),
});
export type BackupManifest = z.infer<typeof BackupManifest>;
