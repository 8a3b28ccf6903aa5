import { describe, expect, test } from 'vitest';
import { storedLimiters } from '../../src/daemons/stored-limiters.ts';
import type { SharedLimiter } from '../../src/kit/limits/rate-limiter.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { openRateCounters } from '../../src/store/open-store.ts';
import { migratePostgres, PostgresDatabase } from '../../src/store/postgres/index.ts';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { emptyRedis, HAS_REDIS, REDIS_MISSING, startRedis } from '../support/redis.ts';

type Urls = Pick<Parameters<typeof openRateCounters>[0], 'redisUrl' | 'postgresUrl' | 'sqlite'>;

async function member(urls: Urls, windowMs = 60_000): Promise<SharedLimiter> {
  const clock = systemClock;
  const counters = (await openRateCounters({ ...urls, clock, logger: silentLogger }))!;
  atEnd(() => counters.close());
  const create = storedLimiters({ counters, service: 'gateway', clock, logger: silentLogger });
  return create('calls', { windowMs });
}

async function allowed(limiter: SharedLimiter, calls: number, limit: number): Promise<number> {
  const verdicts = await Promise.all(Array.from({ length: calls }, async () => limiter.take('key', limit)));
  return verdicts.filter((verdict) => verdict.allowed).length;
}

async function migrated(): Promise<Urls> {
  const postgresUrl = await emptyPostgres();
  const database = new PostgresDatabase({
    url: postgresUrl,
    logger: silentLogger,
    applicationName: 'svc-test',
  });
  await migratePostgres(database);
  await database.close();
  return { redisUrl: null, postgresUrl };
}

async function sqliteFile(): Promise<Urls> {
  return { redisUrl: null, postgresUrl: null, sqlite: { dataDir: await tempDir(), isFirst: false } };
}

const DRIVERS: Array<[name: string, isThere: boolean, urls: () => Promise<Urls>]> = [
  ['SQLite', true, sqliteFile],
  [
    HAS_REDIS ? 'Redis' : REDIS_MISSING,
    HAS_REDIS,
    async () => ({ redisUrl: await emptyRedis(), postgresUrl: null }),
  ],
  [POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, POSTGRES_PROGRAMS !== null, migrated],
];

for (const [name, isThere, urlsOf] of DRIVERS)
  describe.skipIf(!isThere)(`rate limits counted in ${name}`, () => {
    test('three members together let exactly as many calls through as the limit permits', async () => {
      const urls = await urlsOf();
      const members = await Promise.all([member(urls), member(urls), member(urls)]);
      const rounds = Array.from({ length: 4 }, () => members.map((each) => allowed(each, 25, 100)));
      const counts = await Promise.all(rounds.flat());
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(100);
      expect(await allowed(members[0]!, 1, 100)).toBe(0);
    });

    test('a call that was given back may be made by another member', async () => {
      const urls = await urlsOf();
      const [first, second] = [await member(urls), await member(urls)];
      expect(await allowed(first, 3, 2)).toBe(2);
      first.giveBack('key');
      await expect.poll(() => allowed(second, 1, 2)).toBe(1);
      expect(await allowed(await member(urls), 1, 2)).toBe(0);
    });

    test('calls are permitted again once the window has passed', async () => {
      const urls = await urlsOf();
      const [first, second] = [await member(urls, 600), await member(urls, 600)];
      expect(await allowed(first, 2, 1)).toBe(1);
      expect(await allowed(second, 2, 1)).toBe(0);
      await expect.poll(() => allowed(second, 1, 1), { timeout: 3000 }).toBe(1);
    });

    test('a reached limit shows in what other members read', async () => {
      const urls = await urlsOf();
      const [first, second] = [await member(urls), await member(urls)];
      expect(second.peek('key', 1)).toMatchObject({ allowed: true });
      expect(await allowed(first, 1, 1)).toBe(1);
      await expect.poll(() => second.peek('key', 1).allowed).toBe(false);
    });
  });

test.skipIf(!HAS_REDIS)(
  HAS_REDIS ? 'while Redis is killed, each process counts by itself from what it has counted' : REDIS_MISSING,
  async () => {
    const server = await startRedis();
    const urls = { redisUrl: server.url(), postgresUrl: null };
    const [first, second] = [await member(urls), await member(urls)];
    expect(await allowed(first, 3, 5)).toBe(3);
    await server.kill();
    expect([await allowed(first, 9, 5), await allowed(second, 9, 5)]).toEqual([2, 5]);
    await server.up();
    const third = await member(urls);
    await expect.poll(() => allowed(third, 1, 1000), { timeout: 2000 }).toBe(1);
  },
);

test('the first process of a machine deletes the counts that an earlier start left in SQLite', async () => {
  const urls = await sqliteFile();
  expect(await allowed(await member(urls), 2, 1)).toBe(1);
  expect(await allowed(await member(urls), 1, 1)).toBe(0);
  const first = await member({ ...urls, sqlite: { ...urls.sqlite!, isFirst: true } });
  expect(await allowed(first, 2, 1)).toBe(1);
});
