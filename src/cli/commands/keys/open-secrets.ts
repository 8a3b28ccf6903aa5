import { join } from 'node:path';
import { noteMasterKey } from '../../../daemons/gateway/domain/identity/shared-keys.ts';
import type { LoadedConfig } from '../../../kit/config/config.ts';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import type { SealedSecretStore } from '../../../store/ports/index.ts';
import { acquireOwnerLock } from '../../../store/sqlite/owner-lock.ts';
import { sqliteSealedSecrets } from '../../../store/sqlite/svc/sealed-secrets.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';

export interface OpenSecrets {
  store: SealedSecretStore;
  /**
   * Stores the id of the new master key in PostgreSQL, so that nodes with a different master key are refused when they
   * start. Does nothing for SQLite.
   */
  noteKey(id: string): Promise<void>;
}

/**
 * Opens the encrypted secrets of a stopped platform. Services that use the secrets cannot start until `stack` is
 * disposed. Throws CONFLICT if such a service is running on any node.
 */
export function openSecrets(
  folder: DataFolder,
  { config, env }: LoadedConfig,
  { operation, stack }: { operation: string; stack: AsyncDisposableStack },
): Promise<OpenSecrets> {
  const url = postgresUrlOf(config.store, env);
  return url === null ? openFile(folder, operation, stack) : openPostgres(url, operation, stack);
}

async function openFile(
  { root }: DataFolder,
  operation: string,
  stack: AsyncDisposableStack,
): Promise<OpenSecrets> {
  // A gateway that runs without a supervisor locks only `svc.db`, not the data folder.
  const lock = { file: join(root, 'svc.db'), waitMs: 0, label: operation };
  stack.adopt(await acquireOwnerLock(lock), (held) => held.release());
  const store = stack.adopt(await sqliteSealedSecrets(root, silentLogger), (opened) => opened.close());
  return { store, noteKey: async () => {} };
}

async function openPostgres(
  url: string,
  operation: string,
  stack: AsyncDisposableStack,
): Promise<OpenSecrets> {
  const drivers = await import('../../../store/postgres/index.ts');
  const database = new drivers.PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-keys' });
  stack.defer(() => database.close());
  drivers.requireUsableSchema(await drivers.readSchemaState(database), database.server);
  const { server } = database;
  stack.adopt(await drivers.lockOutNodes({ url, server }, operation), (lock) => lock.release());
  const cache = drivers.postgresCache(database);
  return { store: drivers.postgresSealedSecrets(database), noteKey: (id) => noteMasterKey(cache, id) };
}

/** Counts encrypted values by the id of their master key. The platform may be running. */
export async function countSecrets(url: string): Promise<Map<string, number>> {
  const drivers = await import('../../../store/postgres/index.ts');
  const database = new drivers.PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-keys' });
  try {
    drivers.requireUsableSchema(await drivers.readSchemaState(database), database.server);
    return await drivers.postgresSealedSecrets(database).countByKey();
  } finally {
    await database.close();
  }
}
