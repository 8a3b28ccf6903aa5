import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { WorkflowRun } from '../../../contracts/workflow-records.ts';
import { call, type Reply } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { Facts } from '../../ui/facts.tsx';
import { Json } from '../../ui/json.tsx';
import { Neighbours } from '../../ui/neighbours.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';
import { useAction } from '../../ui/use-action.ts';
import { ObjectAlerts } from '../alerts/object-alerts.tsx';
import { TraceMessages } from '../messages/trace-messages.tsx';
import { exportRun } from './export-run.ts';
import { labelTexts } from './labels.ts';
import { RerunPanel } from './rerun-panel.tsx';
import { StepPanel } from './step-panel.tsx';
import { StepsSection } from './steps-section.tsx';
import { useRunAddress } from './use-run-address.ts';
import { whyWaiting } from './why.ts';

const ENDED = ['succeeded', 'failed', 'timed_out', 'cancelled'];
const POLL_MS = 1000;

export default function Run() {
  const { params } = useRoute();
  const runId = params.runId! as WorkflowRun['id'];
  const [isActive, setActive] = useState(true);
  const polled = isActive ? { everyMs: POLL_MS } : {};
  const run = useQuery('getRun', { params: { runId } }, polled);
  const steps = useQuery('listRunSteps', { params: { runId } }, polled);
  const nowActive = run.data === undefined || !ENDED.includes(run.data.status);
  if (nowActive !== isActive) setActive(nowActive);
  useLastRead(run.data);
  const error = run.error ?? steps.error;
  return (
    <Page
      title={run.data ? run.data.workflowId : 'Run'}
      command={`svc workflows show ${runId}`}
      actions={run.data && <Actions run={run.data} />}
    >
      {error && <Failure error={error} onRetry={run.reload} />}
      {!error && !(run.data && steps.data) && <Loading what="the run" />}
      {run.data && steps.data && <Details run={run.data} steps={steps.data.items} />}
    </Page>
  );
}

/** Reads steps and log lines once more after the run ends, because their latest reads can be older than its end. */
function useLastRead(run: WorkflowRun | undefined): void {
  const activeRun = useRef<string | undefined>(undefined);
  const hasEnded = run !== undefined && ENDED.includes(run.status);
  useEffect(() => {
    if (run && !hasEnded) activeRun.current = run.id;
    else if (run && activeRun.current === run.id) outdate('listRunSteps', 'listRunLogs');
  }, [run?.id, hasEnded]);
}

function Actions({ run }: { run: WorkflowRun }) {
  const { route } = useLocation();
  const open = useRunAddress();
  const { isBusy, isFailed, message, run: start } = useAction();
  const attempt = (action: () => Promise<void>) => () => start(() => action().then(() => ''));
  const rerun = attempt(async () => {
    const started = await call('rerunRun', { params: { runId: run.id } });
    route(`/studio/runs/${started.run.id}`);
  });
  const cancel = attempt(async () => {
    await call('cancelRun', { params: { runId: run.id } });
    outdate('getRun', 'listRunSteps');
  });
  const togglePause = attempt(async () => {
    await call(run.pauseScope === undefined ? 'pauseRun' : 'resumeRun', { params: { runId: run.id } });
    outdate('getRun', 'listRunSteps');
  });
  const exported = attempt(() => exportRun(run.id));
  const edit = (): void => open({ rerun: '' });
  const hasEnded = ENDED.includes(run.status);
  return (
    <>
      {isFailed && (
        <span class="error" role="alert">
          {message}
        </span>
      )}
      <Neighbours href={`/studio/runs/${run.id}`} />
      <button type="button" onClick={exported}>
        Export
      </button>
      <button type="button" disabled={isBusy || hasEnded || run.status === 'cancelling'} onClick={cancel}>
        Cancel
      </button>
      <button
        type="button"
        disabled={isBusy || hasEnded || run.status === 'cancelling'}
        onClick={togglePause}
      >
        {run.pauseScope === undefined ? 'Pause' : 'Resume'}
      </button>
      <button type="button" disabled={!hasEnded} onClick={edit}>
        Edit and run again
      </button>
      <button type="button" class="primary" disabled={isBusy || !hasEnded} onClick={rerun}>
        Run again
      </button>
    </>
  );
}

type Steps = Reply<'listRunSteps'>['items'];

function Details({ run, steps }: { run: Reply<'getRun'>; steps: Steps }) {
  const { query } = useLocation();
  const open = useRunAddress();
  const selected = steps.find(({ id }) => id === (query.step ?? query.rerun)) ?? firstToShow(steps);
  const select = (step: string): void => open({ step });
  const why = whyWaiting(run);
  return (
    <>
      <p class="verdict">
        <Status value={run.status} /> {run.error?.message}
      </p>
      {why && <p class="advice">{why}</p>}
      <Facts facts={factsOf(run)} />
      <StepsSection run={run} steps={steps} selected={selected?.id} onSelect={select} />
      {query.rerun !== undefined && ENDED.includes(run.status) && (
        <RerunPanel
          key={`${run.id} ${query.rerun}`}
          run={run}
          fromStep={query.rerun || undefined}
          onClose={() => open({})}
        />
      )}
      {selected && (
        <StepPanel
          run={run}
          steps={steps}
          step={selected}
          onSelect={select}
          onRerun={(rerun) => open({ rerun })}
        />
      )}
      <TraceMessages traceId={run.traceId} />
      <ObjectAlerts id={run.id} />
      <Section title="Input">
        <Json value={run.input} label="Input" />
      </Section>
      {run.output !== null && (
        <Section title="Output">
          <Json value={run.output} label="Output" />
        </Section>
      )}
    </>
  );
}

/** A run is usually opened because of its failed or active step. */
function firstToShow(steps: Steps): Steps[number] | undefined {
  const failed = steps.find(({ status }) => ['failed', 'timed_out', 'interrupted'].includes(status));
  return failed ?? steps.find(({ status }) => ['running', 'waiting'].includes(status)) ?? steps[0];
}

function factsOf(run: Reply<'getRun'>) {
  const { traceId, deliveryId, handles, handlers = [] } = run;
  const { id, trigger, createdAt, startedAt, finishedAt, parentRunId, rerunOf, priority, resumeCount } = run;
  const labels = labelTexts(run.labels);
  return [
    ['Id', <code key="id">{id}</code>],
    ['Started by', trigger],
    ['Created', <Time key="created" ms={createdAt} />],
    ['Started', startedAt === null ? null : <Time key="started" ms={startedAt} />],
    ['Ended', finishedAt === null ? null : <Time key="ended" ms={finishedAt} />],
    ['Trace', <TraceLink key="trace" id={traceId} />],
    ['Delivery', deliveryId && <DeliveryLink key="delivery" id={deliveryId} />],
    ['Parent', parentRunId && <RunLink key="parent" id={parentRunId} />],
    ['Runs again', rerunOf && <RunLink key="again" id={rerunOf} />],
    ['Handles the end of', handles && <RunLink key="handles" id={handles} />],
    [
      'Started at the end',
      handlers.length === 0 ? null : handlers.map((one) => <RunLink key={one.id} id={one.id} />),
    ],
    ['Labels', labels.length === 0 ? null : labels.map((label) => <LabelLink key={label} label={label} />)],
    ['Priority', priority === 0 ? null : String(priority)],
    ['Resumed', resumeCount === 0 ? null : `${resumeCount} times after an interruption`],
  ] as const;
}

function DeliveryLink({ id }: { id: string }) {
  return (
    <a href={`/studio/deliveries/${id}`}>
      <code>{id}</code>
    </a>
  );
}

function LabelLink({ label }: { label: string }) {
  return (
    <>
      <a href={`/studio/runs?label=${encodeURIComponent(label)}`}>{label}</a>{' '}
    </>
  );
}

function RunLink({ id }: { id: string }) {
  return (
    <a href={`/studio/runs/${id}`}>
      <code>{id}</code>
    </a>
  );
}
