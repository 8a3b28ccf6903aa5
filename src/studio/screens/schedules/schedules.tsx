import type { Schedule } from '../../../contracts/schedules.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';

export default function Schedules() {
  const { data, error, reload } = useQuery('listSchedules', {}, { everyMs: 10_000 });
  const action = useAction();
  return (
    <Page title="Schedules" command="svc schedules list">
      <Notice action={action} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="schedules" />}
      {data?.items.length === 0 && (
        <Empty command="svc workflows create">
          No workflow has a schedule. A workflow with `on.schedule` appears here:
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable label="Schedules" columns={columns(action)} items={data.items} keyOf={({ id }) => id} />
      )}
    </Page>
  );
}

const columns = (action: Action): ReadonlyArray<Column<Schedule>> => [
  { name: 'Workflow', value: ({ workflowId }) => workflowId },
  { name: 'When', value: ({ cron, timezone }) => `${cron} (${timezone})` },
  { name: 'State', value: ({ paused }) => <Status value={paused ? 'paused' : 'active'} /> },
  { name: 'Next', value: ({ nextAt, paused }) => (nextAt === null || paused ? '–' : <Time ms={nextAt} />) },
  {
    name: 'Last',
    value: ({ lastAt, lastRunId }) => {
      if (lastAt === null) return 'never';
      return lastRunId === null ? (
        <Time ms={lastAt} />
      ) : (
        <a href={`/studio/runs/${lastRunId}`}>
          <Time ms={lastAt} />
        </a>
      );
    },
  },
  { name: 'Actions', value: (schedule) => <Actions schedule={schedule} action={action} /> },
];

function Actions({ schedule: { id, paused, workflowId }, action }: { schedule: Schedule; action: Action }) {
  const params = { scheduleId: id };
  const toggle = async (): Promise<string> => {
    await call(paused ? 'resumeSchedule' : 'pauseSchedule', { params });
    outdate('listSchedules');
    return paused ? `${workflowId} starts on schedule again.` : `${workflowId} is paused.`;
  };
  const trigger = async (): Promise<string> => {
    const { run } = await call('triggerSchedule', { params });
    return `Run ${run.id} was started.`;
  };
  return (
    <span class="actions">
      <button type="button" disabled={action.isBusy} onClick={() => action.run(toggle)}>
        {paused ? 'Resume' : 'Pause'}
      </button>
      <button type="button" disabled={action.isBusy} onClick={() => action.run(trigger)}>
        Start now
      </button>
    </span>
  );
}
