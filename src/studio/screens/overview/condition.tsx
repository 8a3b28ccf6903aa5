import type { NodeService } from '../../../contracts/node-status.ts';
import { ApiError, type Input, type Reply } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Section } from '../../ui/section.tsx';
import { Failure } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';

const REFRESH = { everyMs: 10_000 };
const APPROVALS: Input<'listRuns'> = { query: { waitingReason: 'approval', limit: 200 } };
const GB = 1e9;

/** One sentence each about the inbox, approvals, the disk and the services. */
export function Condition({ deliveries }: { deliveries: Reply<'countDeliveries'> | undefined }) {
  const node = useQuery('getNodeStatus', {}, REFRESH);
  const isForbidden = node.error instanceof ApiError && node.error.status === 403;
  return (
    <Section title="Now">
      <ul class="sentences">
        {deliveries && <li>{inboxSentence(deliveries.unfinished)}</li>}
        <OldestApproval />
        {node.data && <li>{diskSentence(node.data.disk)}</li>}
        {node.data?.services.map((service) => (
          <li key={service.name}>
            <Service service={service} />
          </li>
        ))}
      </ul>
      {node.error && !isForbidden && <Failure error={node.error} onRetry={node.reload} />}
    </Section>
  );
}

function inboxSentence(unfinished: number): string {
  if (unfinished === 0) return 'Inbox: no delivery waits or runs.';
  return `Inbox: ${unfinished} ${unfinished === 1 ? 'delivery waits or runs' : 'deliveries wait or run'}.`;
}

function OldestApproval() {
  const { data, error, reload } = useQuery('listRuns', APPROVALS, REFRESH);
  if (error) return <Failure error={error} onRetry={reload} />;
  // The list is newest first.
  const oldest = data?.items.at(-1);
  if (!data) return null;
  if (!oldest) return <li>Approvals: no run waits for one.</li>;
  return (
    <li>
      Approvals: the oldest{data.nextCursor === null ? '' : ` of the latest ${data.items.length}`} run that
      waits for one, <a href={`/studio/runs/${oldest.id}`}>{oldest.workflowId}</a>, started at{' '}
      <Time ms={oldest.createdAt} />.
    </li>
  );
}

function diskSentence({ freeBytes, totalBytes }: Reply<'getNodeStatus'>['disk']): string {
  const percent = Math.floor((100 * freeBytes) / totalBytes);
  return `Disk: ${(freeBytes / GB).toFixed(1)} of ${(totalBytes / GB).toFixed(1)} GB are free (${percent} %).`;
}

function Service({ service: { name, isRunning, restarts, lastExit } }: { service: NodeService }) {
  const state = isRunning ? 'runs' : 'does not run';
  const times = restarts === 1 ? 'once' : `${restarts} times`;
  return (
    <>
      Service {name} {state}
      {restarts > 0 && `, restarted ${times} after a crash`}
      {lastExit && (
        <>
          ; its last process ended at <Time ms={lastExit.at} />: {lastExit.reason}
        </>
      )}
      .
    </>
  );
}
