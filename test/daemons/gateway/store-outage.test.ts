import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { deliver, handlerRuns, provision, startGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

const SLOW = 60_000;

/** A gateway whose connections to PostgreSQL a test can cut, and a connection of the test that stays. */
async function start() {
  const url = new URL(await migratedPostgres());
  const link = await TcpProxy.open({ host: url.hostname, port: Number(url.port) });
  const database = new pg.Client(url.href);
  await database.connect();
  atEnd(() => database.end());
  url.port = String(link.port);
  const gateway = await startGateway({ config: { store: { url: url.href } } });
  atEnd(() => link.close());
  const records = async () => {
    const columns = 'status, attempts::int, http_status::int as http';
    const sql = `select ${columns} from svc.delivery where status not in ('refused', 'duplicate') order by position`;
    return (await database.query(sql)).rows;
  };
  const runs = () => handlerRuns(gateway);
  return { gateway, link, database, records, runs };
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'deliveries whose handler runs while PostgreSQL is away' : POSTGRES_MISSING,
  { timeout: SLOW },
  () => {
    test('an async one ends once PostgreSQL is back, and does not run again', async () => {
      const { gateway, link, records, runs } = await start();
      const secret = await provision(gateway, 'later');
      await deliver(gateway, { event: 'later', secret, payload: { sleepMs: 1000 } });
      await expect.poll(runs).toBe(1);
      link.cut();
      const logged = () => gateway.logs.lines.map(({ message }) => message);
      await expect.poll(logged).toContain('The end of a delivery could not be written');
      link.mend();
      await expect.poll(records).toEqual([{ status: 'succeeded', attempts: 1, http: 202 }]);
      expect(runs()).toBe(1);
    });

    test('a sync one is answered 503, and is a duplicate when its sender repeats it', async () => {
      const { gateway, link, records, runs } = await start();
      const secret = await provision(gateway, 'created');
      const sent = { event: 'created', secret, payload: { delivery: { id: '1' }, sleepMs: 1000 } };
      const answer = deliver(gateway, sent);
      await expect.poll(runs).toBe(1);
      link.cut();
      const { status, headers } = await answer;
      expect([status, headers.get('retry-after')]).toEqual([503, '5']);
      link.mend();
      await expect.poll(async () => (await deliver(gateway, sent)).body.status).toBe('duplicate');
      expect(await records()).toEqual([{ status: 'succeeded', attempts: 1, http: 200 }]);
      expect(runs()).toBe(1);
    });

    test('a sync one whose start was stored but not confirmed runs when its sender repeats it', async () => {
      const { gateway, link, database, records, runs } = await start();
      const secret = await provision(gateway, 'created');
      const sent = { event: 'created', secret, payload: { delivery: { id: '1' } } };
      await database.query('begin');
      await database.query('lock table svc.delivery in share mode');
      const answer = deliver(gateway, sent);
      const waiting = async () =>
        (await database.query("select from pg_stat_activity where wait_event_type = 'Lock'")).rowCount;
      await expect.poll(waiting).toBe(1);
      link.cut();
      expect((await answer).status).toBe(503);
      await database.query('commit');
      await expect.poll(records).toMatchObject([{ status: 'running' }]);
      link.mend();
      await expect.poll(async () => (await deliver(gateway, sent)).body.status).toBe('ok');
      expect(await records()).toMatchObject([{ status: 'interrupted' }, { status: 'succeeded' }]);
      expect(runs()).toBe(1);
    });
  },
);
