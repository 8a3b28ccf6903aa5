import { codeOf, PlatformError } from '../../../kit/errors/errors.ts';
import type { Random } from '../../../kit/security/random.ts';
import { type Logger, silentLogger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { requireObjectQuota, scopeName } from '../../object-rules.ts';
import { type ObjectScope, type ObjectStore, requireStorableKey } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { objectFiles } from './object-files.ts';
import { objectRows } from './object-rows.ts';

export interface FileObjectsOptions {
  db: Database;
  folder: string;
  quotaBytes: number;
  clock: Clock;
  random: Random;
  logger?: Logger;
}

/** Maximum attempts to read an object. A concurrent write can remove the file after the row of the file was read. */
const READ_TRIES = 5;

/**
 * Stores objects in files with generated names, so that keys never become paths. A crash can leave a file without a
 * row, which the next start removes.
 */
export function fileObjects({
  db,
  folder,
  quotaBytes,
  clock,
  random,
  logger = silentLogger,
}: FileObjectsOptions): ObjectStore {
  const rows = objectRows(db);
  const files = objectFiles(folder, random);
  const sweeping = files
    .sweep((file) => db.read(() => rows.hasFile(file)))
    .catch((error: unknown) =>
      logger.warn('Object files that a crash left behind could not be removed', { error }),
    );

  async function find(scope: ObjectScope, key: string) {
    requireStorableKey(key);
    return db.read(() => rows.find(scopeName(scope), key));
  }
  const requireQuota = (scope: string, key: string, bytes: number): void =>
    requireObjectQuota(bytes, rows.usage(scope) - (rows.find(scope, key)?.bytes ?? 0), quotaBytes);

  return {
    async read(scope, key) {
      for (let tries = 1; ; tries++) {
        const row = await find(scope, key);
        if (!row) return undefined;
        try {
          const data = await files.read(row.file);
          return { key, bytes: row.bytes, modifiedAt: row.modifiedAt, data };
        } catch (error) {
          if (codeOf(error) === 'ENOENT' && tries < READ_TRIES) continue;
          throw fileError(error, key);
        }
      }
    },
    async write(scope, key, data) {
      requireStorableKey(key);
      const at = scopeName(scope);
      const bytes = data.byteLength;
      // This early check avoids writing a file that exceeds the quota. Only the check inside the transaction is
      // reliable.
      await db.read(() => requireQuota(at, key, bytes));
      const file = await files.write(data).catch((error: unknown) => {
        throw fileError(error, key);
      });
      try {
        const former = await db.write(() => {
          requireQuota(at, key, bytes);
          return rows.put({ scope: at, key, file, bytes, modifiedAt: clock.now() });
        });
        if (former !== undefined) await files.remove(former);
      } catch (error) {
        await files.remove(file);
        throw error;
      } finally {
        files.settled(file);
      }
    },
    async delete(scope, key) {
      requireStorableKey(key);
      const file = await db.write(() => rows.remove(scopeName(scope), key));
      if (file !== undefined) await files.remove(file);
      return file !== undefined;
    },
    async stat(scope, key) {
      const row = await find(scope, key);
      return row && { key, bytes: row.bytes, modifiedAt: row.modifiedAt };
    },
    async list(scope, { prefix, after, limit }) {
      requireStorableKey(prefix, after ?? '');
      return db.read(() => rows.scan(scopeName(scope), prefix, after, limit));
    },
    close: () => sweeping,
  };
}

function fileError(error: unknown, key: string): PlatformError {
  const reason = codeOf(error);
  const message =
    reason === 'ENOENT'
      ? `The file of the object ${JSON.stringify(key)} is missing in the data folder. Restore a backup, or delete the object.`
      : `The object ${JSON.stringify(key)} could not be read or written (${reason}). Check the free space and the permissions of the data folder.`;
  return new PlatformError('STORE_ERROR', message, { details: { key, reason }, cause: error });
}
