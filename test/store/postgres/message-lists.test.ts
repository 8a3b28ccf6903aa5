import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { PostgresMessageLists } from '../../../src/store/postgres/gateway/messages/lists.ts';
import { PostgresMessages } from '../../../src/store/postgres/gateway/messages/messages.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import type { Sql } from '../../../src/store/postgres/named-sql.ts';
import { atEnd, sharedByTests } from '../../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

/** 40,000 messages of two namespaces and two endpoints each. Of 100 deliveries, one is dead and one is open. */
const SEED = `
  insert into svc.message (id, namespace_id, type, timestamp, created_at, trace_id, body_bytes, body)
  select 'msg_' || lpad(n::text, 26, '0'), 'n' || n % 2, 't' || n % 10, n, n, 't', 2, '{}' from generate_series(1, 40000) n;
  insert into svc.message_delivery (message_id, endpoint_id, namespace_id, status, attempts, ended_at)
  select 'msg_' || lpad(n::text, 26, '0'), 'ep_' || n % 4, 'n' || n % 2,
    case n / 4 % 100 when 0 then 'dead' when 1 then 'waiting' else 'succeeded' end, 1, n
  from generate_series(1, 40000) n;
  insert into svc.message_attempt (message_id, endpoint_id, number, "trigger", started_at, duration_ms, succeeded)
  select message_id, endpoint_id, 1, 'first', ended_at, 1, case status when 'succeeded' then 1 else 0 end
  from svc.message_delivery;
  analyze svc.message; analyze svc.message_delivery; analyze svc.message_attempt;`;

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'lists of messages' : POSTGRES_MISSING, () => {
  const database = sharedByTests(async () => {
    const opened = new PostgresDatabase({
      ...{ url: await emptyPostgres(), logger: silentLogger, applicationName: 'svc-test' },
    });
    atEnd(() => opened.close());
    await migratePostgres(opened);
    await opened.pool.query(SEED);
    return opened;
  });

  /** Plans of the statements that `read` runs. */
  async function plansOf(read: (explained: PostgresDatabase) => Promise<unknown>): Promise<string> {
    const plans: string[] = [];
    const explain = (work: (sql: Sql) => Promise<unknown>) =>
      database().lists.read((sql) =>
        work(async (text, values, prepareAs) => {
          const rows = await sql<{ 'QUERY PLAN': string }>(`explain analyze ${text}`, values);
          plans.push(...rows.map((row) => row['QUERY PLAN']));
          return sql(text, values, prepareAs);
        }),
      );
    await read({ read: explain, lists: { read: explain } } as unknown as PostgresDatabase);
    expect(plans.length).toBeGreaterThan(0);
    return plans.join('\n');
  }

  /** Highest number of rows that a part of a plan read. */
  const maxRows = (plan: string): number =>
    Math.max(
      ...[...plan.matchAll(/actual time=\S+ rows=(\d+) loops=(\d+)/g)].map(
        (m) => Number(m[1]) * Number(m[2]),
      ),
    );

  test.each([
    [{}],
    [{ status: 'dead' as const }],
    [{ endpointId: 'ep_0' }],
    [{ endpointId: 'ep_0', status: 'waiting' as const }],
  ])('a page of messages with the filter %j reads as many rows as it shows', async (filter) => {
    const plan = await plansOf(async (explained) => {
      const page = await new PostgresMessageLists(explained).list({
        namespaceId: 'n0',
        limit: 50,
        ...filter,
      });
      expect(page.items).toHaveLength(50);
    });
    expect(plan).not.toMatch(/Seq Scan on message/);
    expect(maxRows(plan)).toBeLessThan(250);
  });

  test('a page with a filter by type examines a bounded number of messages', async () => {
    const plan = await plansOf(async (explained) => {
      const lists = new PostgresMessageLists(explained);
      const page = await lists.list({ namespaceId: 'n0', limit: 50, type: 'none' });
      expect([page.items.length, page.next !== null]).toEqual([0, true]);
    });
    expect(maxRows(plan)).toBeLessThanOrEqual(2000);
  });

  test.each([[{}], [{ succeeded: false }], [{ succeeded: true }]])(
    'a page of attempts with the filter %j reads as many rows as it shows',
    async (filter) => {
      const plan = await plansOf(async (explained) => {
        const lists = new PostgresMessageLists(explained);
        const page = { namespaceId: 'n0', endpointId: 'ep_0', limit: 50, ...filter };
        expect(await lists.attempts(page)).toHaveLength(50);
      });
      expect(plan).not.toMatch(/Seq Scan on message/);
      expect(maxRows(plan)).toBeLessThanOrEqual(110);
    },
  );

  test('the look-ups of the dispatcher and of metrics read no finished deliveries', async () => {
    const plan = await plansOf(async (explained) => {
      const messages = new PostgresMessages(explained);
      expect(await messages.work()).toHaveLength(4);
      expect(await messages.countUnfinished(100)).toBe(100);
      expect(await messages.countUnfinished(100_000)).toBe(400);
      expect(await messages.waiting('ep_0', 20)).toHaveLength(20);
      expect(await messages.retries('ep_0', 1e12, 20)).toEqual([]);
      expect(await messages.nextRetryAt('ep_0', 0)).toBeNull();
    });
    expect(plan).not.toMatch(/Seq Scan/);
    expect(maxRows(plan)).toBeLessThanOrEqual(400);
  });
});
