import type { EndTask, EndTaskStore } from '../../ports/index.ts';
import type { ConcurrentIndex } from '../concurrent-index.ts';
import type { PostgresDatabase } from '../database.ts';
import { addEvents } from './history-rows.ts';

/**
 * Tasks of ended runs. Triggers create a task with the end of a run, and delete it with the start of the run that
 * handles it. The lock of the ended run orders its events. @spec docs/decisions/0280
 */
export const END_TASKS = `
  create table svc.end_task (
    key text collate "C" primary key,
    run_id text collate "C" not null,
    handler integer not null,
    attempts integer not null,
    due_at bigint not null,
    ended_at bigint not null
  );
  create index end_task_due on svc.end_task (due_at);
  create function svc.add_end_tasks() returns trigger language plpgsql as $$
  begin
    insert into svc.end_task (key, run_id, handler, attempts, due_at, ended_at)
    select new.id || '/' || value, new.id, value::integer, 0, new.finished_at, new.finished_at
    from json_array_elements_text(new.end_tasks::json -> new.status);
    return null;
  end $$;
  create function svc.end_task_started() returns trigger language plpgsql as $$
  declare ended bigint;
  begin
    select run.seq into ended from svc.end_task as task join svc.run on run.id = task.run_id
    where task.key = new.handles for update of run;
    if found then
      insert into svc.run_event (run_seq, body)
      values (ended, json_build_array(json_build_object('at', new.created_at, 'type', 'run.handler_started',
        'data', json_build_object('runId', new.id, 'workflowId', new.workflow_id)))::text);
    end if;
    delete from svc.end_task where key = new.handles;
    return null;
  end $$;
  alter table svc.run add column end_tasks text, add column handles text collate "C",
    add column handler_depth integer not null default 0;
  create trigger run_end_tasks after update of status on svc.run for each row
    when (new.end_tasks is not null and old.finished_at is null and new.finished_at is not null)
    execute function svc.add_end_tasks();
  create trigger run_handles_end after insert on svc.run for each row
    when (new.handles is not null) execute function svc.end_task_started();`;

export const RUN_HANDLES: ConcurrentIndex = {
  name: 'run_handles',
  table: 'run',
  columns: 'handles',
  where: 'handles is not null',
};

export function postgresEndTasks(database: PostgresDatabase): EndTaskStore {
  return {
    claim: ({ now, until }, limit) =>
      database.read((sql) =>
        sql<EndTask>(
          `update svc.end_task set due_at = :until
           where key = any(array(
             select key from svc.end_task where due_at <= :now order by due_at limit :limit for update skip locked))
           returning key, run_id as "runId", handler, attempts + 1 as attempts, ended_at as "endedAt"`,
          { now, until, limit },
        ),
      ),
    nextDue: () =>
      database.read(async (sql) => {
        const [next] = await sql<{ at: number }>(
          'select due_at as at from svc.end_task order by due_at limit 1',
        );
        return next?.at ?? null;
      }),
    async postpone(key, dueAt) {
      await database.read((sql) =>
        sql('update svc.end_task set due_at = :dueAt, attempts = attempts + 1 where key = :key', {
          key,
          dueAt,
        }),
      );
    },
    async release(key, dueAt) {
      await database.read((sql) =>
        sql('update svc.end_task set due_at = :dueAt where key = :key', { key, dueAt }),
      );
    },
    finish: (key, event) =>
      database.transact(async (sql) => {
        const [run] = await sql<{ seq: number }>(
          `select run.seq from svc.end_task as task join svc.run on run.id = task.run_id where task.key = :key for update of run`,
          { key },
        );
        // Another process can have deleted the task while this one waited for the lock of the run.
        const deleted = await sql('delete from svc.end_task where key = :key returning key', { key });
        if (event && run && deleted.length > 0) await addEvents(sql, run.seq, [event]);
      }),
  };
}
