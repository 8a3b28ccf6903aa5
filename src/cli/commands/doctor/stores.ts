import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { postgresUrlOf, redisUrlOf } from '../../../kit/config/store-url.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import { DATA_FILES } from '../../../store/sqlite/data-files.ts';
import { inspectDatabase } from '../../../store/sqlite/snapshot.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import { readCredentials } from '../../../supervisor/keys-file.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';
import { checkPostgres } from './postgres.ts';

/**
 * Checks every page of every database file, or the configured PostgreSQL server instead. Also checks that a configured
 * Redis server answers.
 */
export async function checkStores({ folder, loaded, env }: CheckTarget): Promise<Fact[]> {
  const postgresUrl = postgresUrlOf(loaded.config.store, env);
  const store = postgresUrl === null ? checkFiles(folder) : await checkPostgres(postgresUrl);
  const redisUrl = redisUrlOf(loaded.config.cache, env);
  return redisUrl === null ? store : [...store, await checkRedis(redisUrl)];
}

async function checkRedis(url: string): Promise<Fact> {
  const { RedisConnection } = await import('../../../store/redis/index.ts');
  const redis = await RedisConnection.open(url, silentLogger);
  try {
    await redis.probe();
    return fine(`Redis at ${redis.server} answers`);
  } catch (error) {
    return failure(
      messageOf(error),
      'Until it answers, ctx.cache fails and each process counts rate limits alone.',
    );
  } finally {
    await redis.close();
  }
}

function checkFiles(folder: DataFolder): Fact[] {
  const found = DATA_FILES.filter(({ name }) => existsSync(join(folder.root, name)));
  const facts = found.flatMap(({ name, migrations }) => {
    const file = join(folder.root, name);
    try {
      const { faults } = inspectDatabase(file, migrations);
      return faults.map((fault) =>
        failure(`${file} is damaged: ${fault}`, 'svc down, then svc restore <backup>'),
      );
    } catch (error) {
      return [failure(messageOf(error), 'Restore a backup with svc restore <backup>.')];
    }
  });
  if (facts.length > 0) return facts;
  return [
    fine(found.length === 0 ? 'no data yet' : `${found.map(({ name }) => name).join(', ')} are intact`),
  ];
}

export function checkCredentials({ folder, env }: CheckTarget): Fact[] {
  try {
    return [fine(readCredentials(folder, env) ? 'present' : 'created on first start')];
  } catch (error) {
    return [
      failure(
        messageOf(error),
        'Restore credentials.json from a backup, or remove it; the next start creates new ones.',
      ),
    ];
  }
}
