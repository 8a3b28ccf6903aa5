import { z } from 'zod';

/** The archive: a manifest, then the data folder's files under `data/`. @spec docs/operations.md "Backup and restore" */
export const MANIFEST_NAME = 'manifest.json';
export const DATA_PREFIX = 'data/';
export const FORMAT = 1;

/** Files that hold the platform's secrets: what is sealed in `svc.db` opens with these alone. */
export const KEY_FILES: readonly string[] = ['keys.json', 'credentials.json'];

const BackupFile = z.object({
  /** Relative to the data folder, with slashes. */
  name: z.string().min(1).max(4096),
  size: z.number().int().nonnegative(),
  sha256: z.string().length(64),
  /** Permission bits. */
  mode: z.number().int(),
});
export type BackupFile = z.infer<typeof BackupFile>;

export const BackupManifest = z.object({
  /** Of the archive. A newer one is not read. */
  format: z.number().int(),
  /** Epoch milliseconds: everything acknowledged before is inside. */
  createdAt: z.number(),
  version: z.string(),
  /** How many migrations each database has been through. */
  schemas: z.record(z.string(), z.number().int()),
  /** Names the master key that sealed the secrets; null when there was none yet. */
  masterKeyId: z.string().nullable(),
  files: z.array(BackupFile),
});
export type BackupManifest = z.infer<typeof BackupManifest>;
