import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import type { KeyValueStore } from '../../../src/store/ports/index.ts';
import { RedisConnection } from '../../../src/store/redis/connection.ts';
import { RedisKeyValue } from '../../../src/store/redis/key-value.ts';
import { atEnd } from '../../support/at-end.ts';
import { emptyRedis, HAS_REDIS, REDIS_MISSING, startRedis } from '../../support/redis.ts';
import { type OpenDriver, openFresh, times } from '../suites/driver.ts';
import { describeKeyValue } from '../suites/key-value.ts';

const urls = new Map<string, Promise<string>>();

const open: OpenDriver<KeyValueStore> = async ({ dataDir, clock }) => {
  if (!urls.has(dataDir)) urls.set(dataDir, emptyRedis());
  const redis = await RedisConnection.open(await urls.get(dataDir)!, silentLogger);
  return { port: new RedisKeyValue(redis, clock), close: () => redis.close() };
};

const QUOTA = { maxBytes: 20, maxKeys: 2, setting: 'state.quotas.cache' };

describe.skipIf(!HAS_REDIS)(HAS_REDIS ? 'Redis' : REDIS_MISSING, () => {
  describeKeyValue('redis', open);

  test('a scope holds no more than its quota, however many callers write at once', async () => {
    const { port, clock } = await openFresh(open);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => port.set('s', `k${i}`, i, 1000, QUOTA)),
    );
    const refused = results.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(18);
    expect(refused[0]).toMatchObject({
      reason: { code: 'QUOTA_EXCEEDED', details: { keys: 2, maxKeys: 2 } },
    });
    clock.advance(1000);
    await port.set('s', 'later', 1, undefined, QUOTA);
    await expect(port.set('s', 'later', 'x'.repeat(30), undefined, QUOTA)).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
    });
    expect((await port.increment('s', 'later', { by: 2, quota: QUOTA })).value).toBe(3);
  });

  test('a killed server fails calls at once, and is used again within two seconds of its return', async () => {
    const server = await startRedis();
    const redis = await RedisConnection.open(server.url(), silentLogger);
    atEnd(() => redis.close());
    const { clock } = await openFresh(open);
    const port = new RedisKeyValue(redis, clock);
    await port.set('s', 'k', 1);
    const writing = times(50, (i) => port.increment('s', 'n', { by: i }).catch((error: unknown) => error));
    await server.kill();
    await writing;
    const since = Date.now();
    const failure = await port.get('s', 'k').catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(String(failure)).not.toContain('word-of-the-cache');
    expect(Date.now() - since).toBeLessThan(1500);
    await server.up();
    await expect.poll(() => port.get('s', 'k').catch(() => 'away'), { timeout: 2000 }).toBeUndefined();
    await port.set('s', 'k', 2);
    expect((await port.get('s', 'k'))?.value).toBe(2);
  });

  test('a server that accepts connections but does not answer fails calls within two seconds', async () => {
    const server = await startRedis();
    const redis = await RedisConnection.open(server.url(), silentLogger);
    atEnd(() => redis.close());
    server.suspend(true);
    const since = Date.now();
    await expect(redis.probe()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(Date.now() - since).toBeLessThan(2000);
    server.suspend(false);
    await expect
      .poll(
        () =>
          redis.probe().then(
            () => true,
            () => false,
          ),
        { timeout: 2000 },
      )
      .toBe(true);
  });
});
