import { useState } from 'preact/hooks';
import type { RunStep, WorkflowRun } from '../../../contracts/workflow-records.ts';
import { useAllPages } from '../../api/all-pages.ts';
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
/** Pages of 1,000 runs that are read. */
const MAX_PAGES = 5;
/** Runs shown at once. The steps of each are one call. */
const SHOWN = 50;
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
  const { data, error, reload } = useAllPages('listRuns', { waitingReason: reason }, MAX_PAGES, REFRESH);
  const [shown, setShown] = useState(SHOWN);
  // The API lists the newest runs first. Here, the oldest ones come first, so the list is read to its end.
  const runs = data?.items.toReversed();
  const hidden = Math.max(0, (runs?.length ?? 0) - shown);
  return (
    <Section title={title}>
      {error && <Failure error={error} onRetry={reload} />}
      {!runs && !error && <Loading what={title.toLowerCase()} />}
      {runs?.length === 0 && <Empty>Nothing waits here.</Empty>}
      {data && !data.isComplete && (
        <p class="advice">
          Only the newest {data.items.length} runs were read. Older runs wait too and are not shown.
        </p>
      )}
      <ul class="cards">
        {runs?.slice(0, shown).map((run) => (
          <WaitingRun key={run.id} run={run} />
        ))}
      </ul>
      {hidden > 0 && (
        <button type="button" onClick={() => setShown(shown + SHOWN)}>
          Show more ({hidden} newer)
        </button>
      )}
    </Section>
  );
}

function WaitingRun({ run }: { run: WorkflowRun }) {
  const { data, error, reload } = useQuery('listRunSteps', { params: { runId: run.id } });
  const steps = data?.items.filter(isForPerson) ?? [];
  const since = Math.min(...steps.map(({ waitingAt }) => waitingAt ?? Infinity));
  return (
    <li class="card">
      <p class="verdict">
        <a href={`/studio/runs/${run.id}`}>{run.workflowId}</a> since{' '}
        <Time ms={Number.isFinite(since) ? since : run.createdAt} />
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
