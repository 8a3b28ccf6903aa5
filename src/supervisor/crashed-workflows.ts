import type { LoadedConfig } from '../kit/config/config.ts';
import { postgresUrlOf } from '../kit/config/store-url.ts';
import { messageOf } from '../kit/errors/errors.ts';
import { instanceId } from '../kit/files/instance-id.ts';
import { oomKills } from '../kit/process/oom-kills.ts';
import type { Random } from '../kit/security/random.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import { openPostgres } from '../store/open-postgres.ts';
import type { Crash } from './managed-service-options.ts';

/**
 * Ends the member of a crashed workflow service in PostgreSQL, so that other nodes continue its runs at once instead of
 * after its lease or its restart. Never rejects. Does nothing with SQLite.
 */
export async function endCrashedWorkflow(
  crash: Crash,
  { config, env, dataDir }: LoadedConfig,
  { random, logger }: { random: Random; logger: Logger },
): Promise<void> {
  const url = postgresUrlOf(config.store, env);
  if (url === null) return;
  try {
    const store = await openPostgres(
      url,
      'supervisor',
      logger,
      ({ postgresWorkflowStore }, database) => postgresWorkflowStore(database),
      { maxConnections: 1 },
    );
    try {
      const instance = instanceId(dataDir, env, random);
      await store.shared?.endCrashed({ ...crash, instance, oomKills: oomKills() });
    } finally {
      await store.close();
    }
  } catch (error) {
    const message = `The crash of the workflow service could not be recorded; its next start records it: ${messageOf(error)}`;
    logger.warn(message, { error });
  }
}
