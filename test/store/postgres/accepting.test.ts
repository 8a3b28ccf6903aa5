import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { days } from '../../../src/kit/time/duration.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { PostgresWebhookInbox } from '../../../src/store/postgres/gateway/inbox/inbox.ts';
import { atEnd } from '../../support/at-end.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { delivery } from '../../support/new-delivery.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

const DELIVERIES = 100;

async function openInbox() {
  const url = await migratedPostgres();
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  let isClosed = false;
  const close = async (): Promise<void> => {
    if (!isClosed) await database.close();
    isClosed = true;
  };
  atEnd(close);
  const inbox = new PostgresWebhookInbox(database, { clock: systemClock, logger: silentLogger });
  /** Accepts deliveries at the same time, with markers `0`, `1`, … after the prefix. */
  const acceptMany = (prefix: string) =>
    Promise.all(
      Array.from({ length: DELIVERIES }, (_, n) =>
        inbox.accept(
          delivery({ body: new Uint8Array(100) }),
          { key: `${prefix}${n}`, expiresAt: systemClock.now() + days(7) },
          '',
        ),
      ),
    );
  return { url, database, inbox, acceptMany, close };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'accepting on PostgreSQL' : POSTGRES_MISSING, () => {
  test('concurrent lookups of markers share a few statements, and each gets its own answer', async () => {
    const { database, inbox, acceptMany } = await openInbox();
    await acceptMany('known ');
    let statements = 0;
    database.pool.on('acquire', () => statements++);
    const now = systemClock.now();
    const keys = Array.from({ length: DELIVERIES }, (_, n) => `${n % 2 ? 'known' : 'new'} ${n}`);
    const states = await Promise.all(keys.map((key) => inbox.seen(key, now)));
    expect(states).toEqual(keys.map((key) => (key.startsWith('known') ? 'done' : undefined)));
    expect(statements).toBeGreaterThan(0);
    expect(statements).toBeLessThanOrEqual(4);
  });

  test('the planned insert never scans the deliveries, although its plan is older than they are', async () => {
    const { url, acceptMany, close } = await openInbox();
    // The server keeps a plan after the fifth execution on a connection.
    for (let round = 0; round < 20; round++) await acceptMany(`${round} `);
    // A connection reports its counts when it ends.
    await close();
    const reader = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    atEnd(() => reader.close());
    const scans = async () => {
      const { rows } = await reader.sql<{ name: string; scans: number; added: number }>(
        `select relname as name, seq_scan as scans, n_tup_ins as added from pg_stat_user_tables
         where schemaname = 'svc' and relname in ('delivery', 'delivery_body') order by name`,
      );
      return rows;
    };
    const added = 20 * DELIVERIES;
    await expect.poll(async () => (await scans()).map((table) => table.added)).toEqual([added, added]);
    const [deliveries, bodies] = await scans();
    // Creating the indexes scanned the empty tables, also for the one that a later migration drops. The index that is
    // built beside running nodes took two scans.
    const indexes = await reader.sql<{ count: number }>(
      `select count(*) as count from pg_indexes where schemaname = 'svc' and tablename = 'delivery'`,
    );
    expect(deliveries!.scans).toBeLessThanOrEqual(indexes.rows[0]!.count + 2);
    expect(bodies!.scans).toBeLessThanOrEqual(1);
  });
});
