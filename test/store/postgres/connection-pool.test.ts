import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { atEnd } from '../../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

const CONNECTIONS = 4;
const CALLERS = 400;
/** Longer than the time limit for connecting, in total. */
const STATEMENT_S = 0.08;
const SLEEP = (seconds: number): string => `select pg_sleep(${seconds})`;

async function open(url: string): Promise<PostgresDatabase> {
  const database = new PostgresDatabase({
    ...{ url, logger: silentLogger, applicationName: 'svc-test', maxConnections: CONNECTIONS },
  });
  atEnd(() => database.close());
  return database;
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'connections to PostgreSQL' : POSTGRES_MISSING,
  () => {
    test('callers that outnumber the connections wait for their turn, longer than a connection may take to open', async () => {
      const database = await open(await emptyPostgres());
      const startedAt = performance.now();
      const results = await Promise.allSettled(
        Array.from({ length: CALLERS }, (_, n) =>
          n % 2 === 0
            ? database.sql(SLEEP(STATEMENT_S))
            : database.transact((sql) => sql(SLEEP(STATEMENT_S))),
        ),
      );
      expect(performance.now() - startedAt).toBeGreaterThan(5000);
      expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
      expect(database.pool.totalCount).toBe(CONNECTIONS);
    }, 60_000);

    test('the server compiles no statements, on any of the pools', async () => {
      const database = await open(await emptyPostgres());
      for (const pool of [database, database.reserved, database.lists])
        expect((await pool.sql('show jit')).rows).toEqual([{ jit: 'off' }]);
    });

    test('callers that wait fail at once when the server is gone, and are served when it is back', async () => {
      const url = new URL(await emptyPostgres());
      const proxy = await TcpProxy.open({ host: url.hostname, port: Number(url.port) });
      atEnd(() => proxy.close());
      url.port = String(proxy.port);
      const database = await open(url.href);
      const results = Array.from({ length: CALLERS }, () =>
        database.sql(SLEEP(10)).catch((error) => error.code),
      );
      await expect.poll(() => database.pool.totalCount - database.pool.idleCount).toBe(CONNECTIONS);
      proxy.cut();
      expect(new Set(await Promise.all(results))).toEqual(new Set(['STORE_ERROR']));
      proxy.mend();
      await expect
        .poll(() =>
          database.sql('select').then(
            () => 'served',
            () => 'failed',
          ),
        )
        .toBe('served');
    }, 60_000);

    test('callers fail with a reason while no statement ends', async () => {
      const url = await emptyPostgres();
      const [database, holder] = [await open(url), new pg.Client(url)];
      await holder.connect();
      await holder.query('select pg_advisory_lock(1)');
      const held = Array.from({ length: CONNECTIONS }, () =>
        database.sql('select pg_advisory_lock_shared(1)'),
      );
      await expect(database.sql('select')).rejects.toMatchObject({
        code: 'STORE_ERROR',
        details: { reason: 'CONNECTIONS_STALLED' },
      });
      await holder.end();
      await Promise.all(held);
      await database.sql('select');
    }, 60_000);
  },
);
