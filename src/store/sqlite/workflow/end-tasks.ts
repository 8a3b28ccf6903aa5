import type { EndTask, EndTaskStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { WorkflowTables } from './tables.ts';

/**
 * Tasks of ended runs. Triggers create a task with the end of a run, and delete it with the start of the run that
 * handles it. @spec docs/decisions/0280
 */
export const END_TASKS = `
  alter table run add column end_tasks text;
  alter table run add column handles text;
  alter table run add column handler_depth integer not null default 0;
  create index run_handles on run (handles) where handles is not null;
  create table end_task (
    key text primary key,
    run_id text not null,
    handler integer not null,
    attempts integer not null,
    due_at integer not null,
    ended_at integer not null
  ) strict, without rowid;
  create index end_task_due on end_task (due_at);
  create trigger run_end_tasks after update of status on run
  when new.end_tasks is not null and old.finished_at is null and new.finished_at is not null begin
    insert into end_task
    select new.id || '/' || value, new.id, value, 0, new.finished_at, new.finished_at
    from json_each(new.end_tasks, '$.' || new.status);
  end;
  create trigger run_handles_end after insert on run when new.handles is not null begin
    insert into run_event (run_seq, body)
    select seq, json_array(json_object('at', new.created_at, 'type', 'run.handler_started',
      'data', json_object('runId', new.id, 'workflowId', new.workflow_id)))
    from run where id = (select run_id from end_task where key = new.handles);
    delete from end_task where key = new.handles;
  end;`;

export function sqliteEndTasks({ db, rows }: WorkflowTables): EndTaskStore {
  const sql = statements(db);
  return {
    claim: (times, limit) => db.write(() => sql.claim.all({ ...times, limit })),
    nextDue: () => db.read(() => sql.nextDue.get() ?? null),
    async postpone(key, dueAt) {
      await db.write(() => sql.postpone.run({ key, dueAt }));
    },
    async release(key, dueAt) {
      await db.write(() => sql.release.run({ key, dueAt }));
    },
    async finish(key, event) {
      await db.write(() => {
        const seq = sql.seqOf.get({ key });
        sql.remove.run({ key });
        if (event && seq !== undefined) rows.addEvents(seq, [event]);
      });
    },
  };
}

function statements(db: Database) {
  return {
    claim: db.prepare<[{ now: number; until: number; limit: number }], EndTask>(`
      update end_task set due_at = :until
      where key in (select key from end_task where due_at <= :now order by due_at limit :limit)
      returning key, run_id as runId, handler, attempts + 1 as attempts, ended_at as endedAt`),
    nextDue: db.prepare<[], number>('select due_at from end_task order by due_at limit 1').pluck(),
    postpone: db.prepare<[{ key: string; dueAt: number }]>(
      'update end_task set due_at = :dueAt, attempts = attempts + 1 where key = :key',
    ),
    release: db.prepare<[{ key: string; dueAt: number }]>(
      'update end_task set due_at = :dueAt where key = :key',
    ),
    seqOf: db
      .prepare<[{ key: string }], number>(
        'select seq from run where id = (select run_id from end_task where key = :key)',
      )
      .pluck(),
    remove: db.prepare<[{ key: string }]>('delete from end_task where key = :key'),
  };
}
