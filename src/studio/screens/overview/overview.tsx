import type { Input, Reply } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { FAILURES } from '../deliveries/statuses.ts';
import { FAILURES as FAILED_RUNS } from '../runs/statuses.ts';
import { whyWaiting } from '../runs/why.ts';
import { Condition } from './condition.tsx';
import { HourChart, rangeOf } from './hour-chart.tsx';
import type { PlottedHour } from './plot.ts';

const REFRESH = { everyMs: 5000 };
const COUNTED = { everyMs: 15_000 };
const SHOWN = 8;

export default function Overview() {
  const deliveries = useQuery('countDeliveries', {}, COUNTED);
  const runs = useQuery('countRuns', {}, COUNTED);
  return (
    <Page title="Overview" command="svc status">
      <Health />
      <Condition deliveries={deliveries.data} />
      <div class="columns">
        <HourChart
          title="Deliveries per hour"
          what="deliveries"
          hours={deliveries.data?.items}
          error={deliveries.error}
          recordsOf={deliveriesOf}
          onRetry={deliveries.reload}
        />
        <HourChart
          title="Runs per hour"
          what="runs"
          hours={runs.data?.items}
          error={runs.error}
          recordsOf={runsOf}
          onRetry={runs.reload}
        />
        <FailedDeliveries />
        <WaitingRuns />
      </div>
    </Page>
  );
}

const deliveriesOf = (hour: PlottedHour): string =>
  `/studio/deliveries?${rangeOf(hour, 'since', 'until')}${hour.failed > 0 ? `&status=${FAILURES}` : ''}`;
const runsOf = (hour: PlottedHour): string =>
  `/studio/runs?${rangeOf(hour, 'from', 'to')}${hour.failed > 0 ? `&status=${FAILED_RUNS}` : ''}`;

function Health() {
  const { data, error, reload } = useQuery('apiHealth', {}, REFRESH);
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return <Loading what="the state of the gateway" />;
  return (
    <p class="verdict">
      <Status value={data.status === 'ok' ? 'ready' : data.status} /> gateway {data.version}
      {data.degraded?.map(({ message }) => (
        <span key={message} class="error">
          {message}
        </span>
      ))}
    </p>
  );
}

function FailedDeliveries() {
  const input: Input<'listDeliveries'> = { query: { status: 'dead', limit: SHOWN } };
  const { data, error, reload } = useQuery('listDeliveries', input, REFRESH);
  return (
    <Section
      title="Deliveries that have failed for good"
      actions={<a href="/studio/deliveries">All deliveries</a>}
    >
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="deliveries" />}
      {data?.items.length === 0 && <Empty>None. Deliveries without attempts left appear here.</Empty>}
      <ul class="plain">
        {data?.items.map(({ webhookId, pluginId, event, receivedAt, reason }) => (
          <li key={webhookId}>
            <a href={`/studio/deliveries/${webhookId}`}>
              {pluginId}/{event}
            </a>
            <span class="reason">{reason}</span> <Time ms={receivedAt} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function WaitingRuns() {
  const input: Input<'listRuns'> = { query: { status: 'waiting', limit: SHOWN } };
  const { data, error, reload } = useQuery('listRuns', input, REFRESH);
  return (
    <Section title="Runs that wait" actions={<a href="/studio/runs">All runs</a>}>
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="runs" />}
      {data?.items.length === 0 && (
        <Empty>None. Runs that wait for a person, a time or a plugin appear here.</Empty>
      )}
      <ul class="plain">
        {data?.items.map((run) => (
          <WaitingRun key={run.id} run={run} />
        ))}
      </ul>
    </Section>
  );
}

function WaitingRun({ run }: { run: Reply<'listRuns'>['items'][number] }) {
  return (
    <li>
      <a href={`/studio/runs/${run.id}`}>{run.workflowId}</a>
      <span class="reason">{whyWaiting(run)}</span> <Time ms={run.createdAt} />
    </li>
  );
}
