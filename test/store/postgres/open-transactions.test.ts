import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import type { GatewayStore } from '../../../src/store/ports/index.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { postgresGatewayStore } from '../../../src/store/postgres/index.ts';
import { memberOverview } from '../../../src/store/postgres/member-overview.ts';
import { atEnd } from '../../support/at-end.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { delivery } from '../../support/new-delivery.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

/** A gateway store on a server on which another database has a writing transaction open. */
async function openStore(): Promise<{
  store: GatewayStore;
  database: PostgresDatabase;
  commitOther(): Promise<void>;
}> {
  const url = await emptyPostgres();
  await migrateDatabase(url);
  const other = new pg.Client(await emptyPostgres());
  await other.connect();
  atEnd(() => other.end());
  await other.query('create table load (n integer)');
  await other.query('begin; insert into load values (1)');
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  atEnd(() => database.close());
  return {
    store: postgresGatewayStore(database, { clock: systemClock, logger: silentLogger }),
    database,
    commitOther: async () => void (await other.query('commit')),
  };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, () => {
  test('a transaction of another database does not delay revocations', async () => {
    const { store, database, commitOther } = await openStore();
    const { feed, members, revocations } = store;
    const fence = await members.join({
      ...{ kind: 'gateway', instance: 'a', version: '1.0.0', release: null, keys: null },
      ...{ leaseMs: 60_000, isSole: false },
    });
    const start = await feed.begin();
    await feed.noteRead(fence, start);
    await revocations.revokeHost('h1', 1);
    await revocations.revokeHost('h2', 1);
    const mark = await feed.latest();
    expect(await feed.behind(mark)).toEqual([fence]);
    expect((await memberOverview(database))[0]!.feedLagMs).toBeGreaterThanOrEqual(0);

    const first = await feed.read(start, 1);
    expect(first.changes).toEqual([{ topic: 'revocations', key: 'h1' }]);
    const second = await feed.read(first.cursor, 1);
    expect(second.changes).toEqual([{ topic: 'revocations', key: 'h2' }]);
    const { changes, cursor } = await feed.read(second.cursor, 1);
    expect(changes).toEqual([]);
    await feed.noteRead(fence, cursor);
    expect(await feed.behind(mark)).toEqual([]);
    expect((await memberOverview(database))[0]!.feedLagMs).toBe(0);

    await commitOther();
    expect((await feed.read(cursor, 10)).changes).toEqual([]);
    await revocations.revokeHost('h3', 1);
    expect((await feed.read(cursor, 10)).changes).toEqual([{ topic: 'revocations', key: 'h3' }]);
  });

  test('a transaction of another database delays only deliveries with an order key', async () => {
    const { store, commitOther } = await openStore();
    const { inbox } = store;
    const [free, ordered] = [
      delivery({ mode: 'async', orderKey: null }),
      delivery({ mode: 'async', orderKey: 'k' }),
    ];
    await inbox.accept(ordered, undefined, '');
    await inbox.accept(free, undefined, '');
    expect(await inbox.unfinished(10)).toMatchObject([{ webhookId: free.webhookId, isProvisional: true }]);
    // A bulk replay includes both.
    expect(await inbox.newest()).toBeGreaterThan(await inbox.latest());
    await commitOther();
    expect(await inbox.unfinished(10)).toMatchObject([
      { webhookId: ordered.webhookId, isProvisional: false },
      { webhookId: free.webhookId, isProvisional: false },
    ]);
  });
});
