import type { RunStep, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { useQuery } from '../../api/query.ts';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { Decide } from './decide.tsx';

/** Waits that a person can end, in the order in which they are listed. */
const WAITS = [
  { reason: 'approval', title: 'Approvals' },
  { reason: 'decision', title: 'Interrupted steps' },
  { reason: 'signal', title: 'Signals' },
] as const;
const LIMIT = 200;
const REFRESH = { everyMs: 5000 };

export default function Inbox() {
  return (
    <Page title="Inbox" command="svc workflows runs --waiting-for approval">
      {WAITS.map(({ reason, title }) => (
        <Waiting key={reason} reason={reason} title={title} />
      ))}
    </Page>
  );
}

function Waiting({ reason, title }: { reason: (typeof WAITS)[number]['reason']; title: string }) {
  const { data, error, reload } = useQuery(
    'listRuns',
    { query: { waitingReason: reason, limit: LIMIT } },
    REFRESH,
  );
  // The list is newest first, and who waits longest comes first here.
  const runs = data?.items.toReversed();
  return (
    <Section title={title}>
      {error && <Failure error={error} onRetry={reload} />}
      {!runs && !error && <Loading what={title.toLowerCase()} />}
      {runs?.length === 0 && <Empty>Nothing waits here.</Empty>}
      <ul class="cards">
        {runs?.map((run) => (
          <WaitingRun key={run.id} run={run} />
        ))}
      </ul>
    </Section>
  );
}

function WaitingRun({ run }: { run: WorkflowRun }) {
  const { data, error, reload } = useQuery('listRunSteps', { params: { runId: run.id } });
  const steps = data?.items.filter(isForPerson) ?? [];
  return (
    <li class="card">
      <p class="verdict">
        <a href={`/studio/runs/${run.id}`}>{run.workflowId}</a> since <Time ms={run.createdAt} />
      </p>
      {error && <Failure error={error} onRetry={reload} />}
      {steps.map((step) => (
        <Decide key={step.id} run={run} step={step} />
      ))}
    </li>
  );
}

function isForPerson({ waitingFor, status }: RunStep): boolean {
  return status === 'interrupted' || ['approval', 'decision', 'signal'].includes(waitingFor?.for ?? '');
}
