import { join } from 'node:path';
import { expect, test } from 'vitest';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { openDatabase, sqliteWorkflowStore } from '../../../../src/store/sqlite/index.ts';
import { WORKFLOW_MIGRATIONS } from '../../../../src/store/sqlite/workflow/schema.ts';
import { tempDir } from '../../../support/daemon.ts';

/** A run in the air and one that waits, as the first schema kept them. */
const IN_FLIGHT = `
  insert into boot (boot_id, pid, started_at, lease_until) values ('old', 1, 1, 2);
  insert into run (seq, id, kind, tenant_id, workflow_id, definition_hash, status, ready, rank, priority, wake_at, fence, resume_count,
    stalls, trigger_kind, depth, host_id, request_id, trace_id, created_at, input)
  values (1, 'run_a', 'workflow', 'acme', 'w', 'h', 'running', 0, 0, 0, null, 1, 0, 0, 'manual', 0, 'ci', 'r', 't', 1, '{}'),
    (2, 'run_b', 'workflow', 'acme', 'w', 'h', 'waiting', 0, 0, 0, 9000, null, 0, 0, 'manual', 0, 'ci', 'r', 't', 2, '@1');
  insert into large_value (run_seq, n, body) values (2, 1, '{"large":true}');
  insert into step (run_seq, job_key, idx, status, attempts) values (1, 'main', 0, 'succeeded', 1), (1, 'main', 1, 'running', 1);
  insert into run_event (run_seq, n, body) values (1, 1, '[{"at":1,"type":"run.queued"}]'), (2, 1, '[{"at":2,"type":"run.queued"}]'),
    (1, 2, '[{"at":3,"type":"run.started"},{"at":3,"type":"job.started","job":"main"}]');
  insert into run_log (run_seq, n, body) values (1, 1, '[{"at":4,"level":"info","message":"hello"}]');`;

test('steps of workflow code without a stored order are ordered by their end times', async () => {
  const dataDir = await tempDir();
  const old = await openDatabase({
    file: join(dataDir, 'workflow.db'),
    migrations: WORKFLOW_MIGRATIONS.slice(0, 8),
  });
  const rows = IN_FLIGHT.split(';').slice(0, 3);
  const steps = `insert into step (run_seq, job_key, idx, found, status, attempts, finished_at) values
    (1, 'main', 0, '{}', 'succeeded', 1, 30), (1, 'main', 1, '{}', 'failed', 1, 20), (1, 'main', 2, '{}', 'waiting', 1, null),
    (2, 'main', 0, null, 'succeeded', 1, 10), (2, 'main', 1, '{}', 'succeeded', 1, 10)`;
  for (const statement of [...rows, steps]) await old.write(() => old.prepare(statement).run());
  await old.close();
  const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
  const orders = async (seq: number) => (await store.runs.load(seq))?.steps.map(({ endOrder }) => endOrder);
  expect(await orders(1)).toEqual([2, 1, null]);
  expect(await orders(2)).toEqual([null, 1]);
  await store.close();
});

test('a database of the first schema is migrated with its runs in flight', async () => {
  const dataDir = await tempDir();
  const old = await openDatabase({
    file: join(dataDir, 'workflow.db'),
    migrations: WORKFLOW_MIGRATIONS.slice(0, 1),
  });
  for (const statement of IN_FLIGHT.split(';').filter((text) => text.trim() !== ''))
    await old.write(() => old.prepare(statement).run());
  await old.close();

  const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
  const typesOf = async (seq: number) => (await store.runs.events(seq, 0, 100)).map(({ item }) => item.type);
  expect(await typesOf(1)).toEqual(['run.queued', 'run.started', 'job.started']);
  expect((await store.runs.logs(1, 0, 10)).map(({ item }) => item.message)).toEqual(['hello']);
  expect((await store.runs.load(2))?.run.input).toBe('{"large":true}');
  await store.boots.begin({
    bootId: 'new',
    pid: 2,
    now: 5000,
    leaseMs: 1000,
    exclusive: true,
    hadFault: false,
    oomKills: 1,
  });
  await store.boots.interrupt(5000, 10, () => false);
  const resumed = await store.boots.resume(5000, 10, () => false);
  expect(resumed.map(({ id, status }) => [id, status])).toEqual([['run_a', 'queued']]);
  expect((await store.runs.load(1))?.steps.map(({ status }) => status)).toEqual(['succeeded', 'interrupted']);
  expect((await store.queue.due(9000, 10)).map(({ id }) => id)).toEqual(['run_b']);
  expect((await typesOf(1)).slice(-2)).toEqual(['run.interrupted', 'run.resumed']);
  await store.close();
});
