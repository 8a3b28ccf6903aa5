import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { DATA_FILES } from '../../../store/sqlite/data-files.ts';
import { inspectDatabase } from '../../../store/sqlite/snapshot.ts';
import { type BackupManifest, KEY_FILES } from '../backup/manifest.ts';

/**
 * Throws STORE_ERROR if a database in the backup has a newer schema than this version of svc supports. Must be called
 * before the archive is unpacked.
 */
export function requireKnownSchemas({ schemas, version: madeBy }: BackupManifest): void {
  for (const [name, schema] of Object.entries(schemas)) {
    const known = DATA_FILES.find((file) => file.name === name)?.migrations.length;
    if (known !== undefined && schema <= known) continue;
    throw new PlatformError(
      'STORE_ERROR',
      `The backup was created by svc ${madeBy}, whose ${name} is newer than this version supports (schema ${schema}; supported: ${known ?? 'no such file'}).`,
      {
        details: { file: name, schema, knownSchema: known ?? null, hint: `Install svc ${madeBy} or newer.` },
      },
    );
  }
}

/**
 * Throws STORE_ERROR if a database is corrupt. File digests cannot detect a database that was corrupt before the
 * backup.
 */
export function requireIntact(folder: string): void {
  for (const { name, migrations } of DATA_FILES) {
    const file = join(folder, name);
    if (!existsSync(file)) continue;
    const { faults } = inspectDatabase(file, migrations);
    if (faults.length === 0) continue;
    throw new PlatformError('STORE_ERROR', `${name} in the backup is damaged: ${faults[0]}.`, {
      details: { file: name, faults },
    });
  }
}

/** Copies the current key files to the restored data, unless the backup contains key files. */
export async function keepKeys(from: string, into: string): Promise<void> {
  for (const name of KEY_FILES) {
    const [here, there] = [join(from, name), join(into, name)];
    if (!existsSync(there) && existsSync(here)) await copyFile(here, there);
  }
}
