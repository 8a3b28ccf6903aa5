import type { TraceSpan } from '../../../contracts/traces.ts';
import { useQuery } from '../../api/query.ts';
import { Section } from '../../ui/section.tsx';
import { Status } from '../../ui/status.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';

/** Spans that are read to find the delivery and the runs of a trace. Parents come before their children. */
const MAX_SPANS = 200;

/** The delivery and the runs in whose trace a message was sent. */
export function Origin({ traceId }: { traceId: string }) {
  const input = { params: { traceId }, query: { limit: MAX_SPANS } };
  const sources = (useQuery('getTrace', input).data?.spans ?? []).flatMap(sourceOf);
  if (sources.length === 0) return null;
  return (
    <Section title="Sent by" actions={<TraceLink id={traceId} label="Trace" />}>
      <ul class="sentences">
        {sources.map(({ href, text, span }) => (
          <li key={href}>
            <Status value={span.result} /> <a href={href}>{text}</a>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function sourceOf(span: TraceSpan): Array<{ href: string; text: string; span: TraceSpan }> {
  const { kind, name, deliveryId, runId, jobId } = span;
  if (kind === 'delivery' && deliveryId)
    return [{ href: `/studio/deliveries/${deliveryId}`, text: `delivery ${name}`, span }];
  if (kind === 'run' && runId) return [{ href: `/studio/runs/${runId}`, text: `run ${name}`, span }];
  if (kind === 'job' && jobId) return [{ href: `/studio/runs/${jobId}`, text: `job ${name}`, span }];
  return [];
}
