import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import type { RunRecord } from '../../../src/store/ports/index.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { postgresWorkflowStore } from '../../../src/store/postgres/workflow/store.ts';
import { atEnd } from '../../support/at-end.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { KEYED, NIGHTLY } from '../suites/pauses.ts';
import { boot, claim, started } from '../suites/workflow.ts';

const SUSPECTS = { crashes: 2, killsPerCrash: 10 };
const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

async function open() {
  const url = await migratedPostgres();
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  atEnd(() => database.close());
  const store = postgresWorkflowStore(database);
  const find = async ({ id }: RunRecord) => (await store.runs.find('acme', id))!;
  const client = await database.pool.connect();
  atEnd(() => client.release());
  const untilWaiting = () =>
    expect.poll(async () => (await database.sql(WAITING)).rowCount, { timeout: 20_000 }).toBe(1);
  return { database, store, find, client, untilWaiting };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'pauses on PostgreSQL' : POSTGRES_MISSING, () => {
  test('a run that was claimed when its workflow was paused does not begin once its node gives it back', async () => {
    const { store, find } = await open();
    const fence = await boot(store);
    const [returned, begun] = [await started(store), await started(store)];
    const ready = { shares: [{ tenantId: 'acme', limit: 9 }], limit: 9, now: 9000, suspects: SUSPECTS };
    expect(await store.shared!.claim(fence, 'ready', ready)).toHaveLength(2);
    await store.pauses.pauseWorkflow(NIGHTLY);
    expect((await store.shared!.unread(fence, [returned.seq, begun.seq], 9000)).paused).toEqual(new Set());
    await store.shared!.unclaim(fence, [returned.seq]);
    const first = claim(begun, fence);
    const write = { ...first, expect: { fence, status: 'queued' as const } };
    expect(await store.runs.write(write)).toMatchObject({ applied: true });
    expect(await find(begun)).toMatchObject({ status: 'running', pauseScope: null });
    expect(await find(returned)).toMatchObject({ status: 'queued', pauseScope: 'workflow' });
    expect(await store.shared!.claim(fence, 'ready', ready)).toEqual([]);
    await store.pauses.resumeWorkflow(NIGHTLY);
    expect(await store.shared!.claim(fence, 'ready', ready)).toMatchObject([{ run: { id: returned.id } }]);
  });

  test('starts that are in progress when their workflow is paused or resumed are paused or resumed with it', async () => {
    const { store, find, client, untilWaiting } = await open();
    const first = await started(store);
    const start = async (id: string) => {
      await client.query('begin');
      const { rows } = await client.query(`select svc.is_workflow_paused('acme', 'nightly') as paused`);
      await client.query(
        `insert into svc.run overriding system value
         select (jsonb_populate_record(run, jsonb_build_object('seq', seq + 10 * length($1), 'id', $1::text,
           'pause_scope', case when $2 then 'workflow' end))).*
         from svc.run where seq = $3`,
        [id, rows[0].paused, first.seq],
      );
    };
    await start('run_a');
    const paused = store.pauses.pauseWorkflow(NIGHTLY);
    await untilWaiting();
    await client.query('commit');
    await paused;
    expect(await find({ ...first, id: 'run_a' })).toMatchObject({ pauseScope: 'workflow' });
    await start('run_late');
    const resumed = store.pauses.resumeWorkflow(NIGHTLY);
    await untilWaiting();
    await client.query('commit');
    await resumed;
    for (const id of ['run_a', 'run_late'])
      expect(await find({ ...first, id })).toMatchObject({ pauseScope: null });
  });

  test('each start reads the pause of its workflow once', async () => {
    const { database, store } = await open();
    await database.pool.query(`
      create sequence svc.reads;
      create or replace function svc.is_workflow_paused(tenant text, workflow text) returns boolean language sql volatile
        as 'select nextval(''svc.reads'') < 0'`);
    for (const more of [KEYED, KEYED, {}, { ...KEYED, runAt: 99_000 }]) await started(store, more);
    const { rows } = await database.pool.query('select last_value::integer as reads from svc.reads');
    expect(rows).toEqual([{ reads: 4 }]);
  });

  test('a resume of many runs lets the oldest one acquire their concurrency key', async () => {
    const { database, store } = await open();
    await store.pauses.pauseWorkflow(NIGHTLY);
    const first = await started(store, KEYED);
    await database.pool.query(
      `insert into svc.run overriding system value
       select (jsonb_populate_record(run, jsonb_build_object('seq', seq + n, 'id', 'run_' || n))).*
       from svc.run, generate_series(1, 1200) as n`,
    );
    await store.pauses.resumeWorkflow(NIGHTLY);
    const { rows } = await database.pool.query(
      `select count(*) filter (where pause_scope is null)::integer as resumed, min(id) filter (where ready) as first,
         count(*) filter (where ready)::integer as ready
       from svc.run`,
    );
    expect(rows).toEqual([{ resumed: 1201, first: first.id, ready: 1 }]);
    await store.pauses.pauseWorkflow(NIGHTLY);
    const paused = await database.pool.query(`select from svc.run where pause_scope = 'workflow'`);
    expect(paused.rowCount).toBe(1201);
  });

  test('a workflow that is paused again before its runs are resumed keeps them paused', async () => {
    const { store, find, client, untilWaiting } = await open();
    await store.pauses.pauseWorkflow(NIGHTLY);
    const run = await started(store, KEYED);
    await client.query('begin');
    await client.query(`select pg_advisory_xact_lock(hashtextextended('key ' || $1, 0))`, [
      run.concurrencyKey,
    ]);
    const resumed = store.pauses.resumeWorkflow(NIGHTLY);
    await untilWaiting();
    await store.pauses.pauseWorkflow(NIGHTLY);
    await client.query('commit');
    await resumed;
    expect(await find(run)).toMatchObject({ ready: false, pauseScope: 'workflow' });
  });

  test('a run that is paused while its key is passed on does not acquire the key', async () => {
    const { store, find, client, untilWaiting } = await open();
    const holder = await started(store, { ...KEYED, workflowId: 'other' });
    const [first, second] = [await started(store, KEYED), await started(store, KEYED)];
    await client.query('begin');
    await client.query(`update svc.run set pause_scope = 'run' where seq = $1`, [first.seq]);
    const ended = store.runs.cancelIdle(holder.seq, 3000);
    await untilWaiting();
    await client.query('commit');
    expect((await ended).promoted.map(({ id }) => id)).toEqual([second.id]);
    expect(await find(first)).toMatchObject({ ready: false, reason: 'concurrency', pauseScope: 'run' });
  });

  test('pauses, resumes and superseding starts lock runs in the order of all statements', async () => {
    const { store, client, untilWaiting } = await open();
    await started(store, KEYED);
    const [low, high] = [await started(store, KEYED), await started(store, KEYED)];
    const whileHighIsLocked = async (change: () => Promise<unknown>) => {
      await client.query('begin');
      await client.query('select from svc.run where seq = $1 for update', [high.seq]);
      const changed = change();
      await untilWaiting();
      await client.query('select from svc.run where seq = $1 for update nowait', [low.seq]);
      await client.query('commit');
      await changed;
    };
    await whileHighIsLocked(() => store.pauses.pauseWorkflow(NIGHTLY));
    await whileHighIsLocked(() => store.pauses.resumeWorkflow(NIGHTLY));
    await whileHighIsLocked(() => started(store, KEYED, { strategy: 'replace-queued' }));
  });
});
