import { z } from 'zod';

// The archive contains this manifest, then the data folder under `data/`. @spec docs/operations.md "Backup and restore"
export const MANIFEST_NAME = 'manifest.json';
export const DATA_PREFIX = 'data/';
export const FORMAT = 1;

/** The platform's secrets; required to decrypt values in `svc.db`. */
export const KEY_FILES: readonly string[] = ['keys.json', 'credentials.json'];

const BackupFile = z.object({
  /** Relative to the data folder, with slashes. */
  name: z.string().min(1).max(4096),
  size: z.number().int().nonnegative(),
  sha256: z.string().length(64),
  /** Permission bits of the file. */
  mode: z.number().int(),
});
export type BackupFile = z.infer<typeof BackupFile>;

export const BackupManifest = z.object({
  /** Format of the archive; newer formats are rejected. */
  format: z.number().int(),
  /** Epoch milliseconds; the backup contains everything acknowledged before. */
  createdAt: z.number(),
  version: z.string(),
  /** Number of applied migrations by database. */
  schemas: z.record(z.string(), z.number().int()),
  /** Id of the master key that encrypted the secrets; null if there was none. */
  masterKeyId: z.string().nullable(),
  files: z.array(BackupFile),
});
export type BackupManifest = z.infer<typeof BackupManifest>;
