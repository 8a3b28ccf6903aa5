import type { LogRecord } from '../../../contracts/logs.ts';
import type { Trace, TraceSpan } from '../../../contracts/traces.ts';
import type { Reply } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Facts } from '../../ui/facts.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { idsBelow } from './span-tree.ts';

const LOG_LINES = 1000;

interface SpanPanelProps {
  trace: Trace;
  span: TraceSpan;
  /** Interval at which the log is loaded again, in ms. Undefined for a trace that is complete. */
  everyMs: number | undefined;
}

/** The selected span: its facts, its links and the log lines of it and of the spans below it. */
export function SpanPanel(props: SpanPanelProps) {
  const { span } = props;
  const { error } = span;
  return (
    <Section title={`${span.kind} ${span.name}`}>
      <div class="split">
        <div>
          {error && (
            <p class="error">
              <code>{error.code}</code> {error.message}
            </p>
          )}
          <Facts facts={factsOf(span)} />
        </div>
        <SpanLog {...props} />
      </div>
    </Section>
  );
}

function factsOf(span: TraceSpan) {
  const { result, startedAt, durationMs, service, deliveryId, runId, stepId, jobId, pluginId, attributes } =
    span;
  const step = stepId === undefined ? '' : `?step=${encodeURIComponent(stepId)}`;
  return [
    ['Result', result],
    ['Started', <Time key="started" ms={startedAt} />],
    ['Duration', durationMs === null ? 'not ended' : <Duration key="duration" ms={durationMs} />],
    ['Service', service],
    [
      'Plugin',
      pluginId && <Linked key="plugin" to={`plugins/${encodeURIComponent(pluginId)}`} text={pluginId} />,
    ],
    ['Delivery', deliveryId && <Linked key="delivery" to={`deliveries/${deliveryId}`} text={deliveryId} />],
    ['Run', runId && <Linked key="run" to={`runs/${runId}${step}`} text={runId} />],
    ['Job', jobId && <Linked key="job" to={`runs/${jobId}`} text={jobId} />],
    ...Object.entries(attributes).map(([name, value]) => [name, String(value)] as const),
  ] as const;
}

function Linked({ to, text }: { to: string; text: string }) {
  return (
    <a href={`/studio/${to}`}>
      <code>{text}</code>
    </a>
  );
}

function SpanLog({ trace, span, everyMs }: SpanPanelProps) {
  const { data, error, reload } = useQuery(
    'queryLogs',
    { query: { traceId: trace.traceId, limit: LOG_LINES } as never },
    everyMs === undefined ? {} : { everyMs },
  );
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return <Loading what="the log" />;
  const lines = linesOf(data.items, trace, span);
  const all = `/studio/logs?traceId=${encodeURIComponent(trace.traceId)}`;
  return (
    <div>
      {lines.length === 0 && <p class="log">{noLinesText(data, everyMs !== undefined)}</p>}
      {lines.length > 0 && (
        <ol class="log" aria-label="Log lines of the span">
          {lines.map(({ time, level, message }, index) => (
            <li key={`${time}-${index}`} class={level}>
              <Time ms={time} /> {level} {message}
            </li>
          ))}
        </ol>
      )}
      {lines.length > 0 && data.total > data.items.length && (
        <p class="reason">Only the newest {data.items.length} log lines of the trace were searched.</p>
      )}
      <a href={all}>All log lines of the trace</a>
    </div>
  );
}

function noLinesText({ items, total }: Reply<'queryLogs'>, isLoadedAgain: boolean): string {
  if (total > items.length)
    return `No line of this span is among the newest ${items.length} log lines of the trace.`;
  return isLoadedAgain ? 'No log line of this span has arrived yet.' : 'No log line belongs to this span.';
}

/** Returns the lines of a span, oldest first. A delivery also has the lines that name only its request. */
function linesOf(records: readonly LogRecord[], trace: Trace, span: TraceSpan): LogRecord[] {
  const ids = idsBelow(trace, span);
  const ofRequest = span.kind === 'delivery' ? span.requestId : undefined;
  return records
    .filter(({ spanId, requestId }) =>
      spanId === undefined ? requestId !== undefined && requestId === ofRequest : ids.has(spanId),
    )
    .toReversed();
}
