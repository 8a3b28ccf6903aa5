import { useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { Trace, TraceSpan } from '../../../contracts/traces.ts';
import { useQuery } from '../../api/query.ts';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { SpanPanel } from './span-panel.tsx';
import { TraceWaterfall } from './trace-waterfall.tsx';

const POLL_MS = 2000;
/** Events and log lines of a trace arrive about a second late, so a recent trace is loaded again. */
const SETTLED_AFTER_MS = 10_000;

export default function TraceScreen() {
  const { params } = useRoute();
  const traceId = params.traceId!;
  const [isSettled, setSettled] = useState(false);
  const polled = isSettled ? {} : { everyMs: POLL_MS };
  const { data, error, reload } = useQuery('getTrace', { params: { traceId } }, polled);
  if (data && hasSettled(data) !== isSettled) setSettled(!isSettled);
  return (
    <Page title="Trace" command={`svc traces show ${shellWord(traceId)}`}>
      {error && <Failure error={error} onRetry={reload} />}
      {!error && !data && <Loading what="the trace" />}
      {!error && data && <Details trace={data} isSettled={isSettled} />}
    </Page>
  );
}

function Details({ trace, isSettled }: { trace: Trace; isSettled: boolean }) {
  const { query, path, route } = useLocation();
  const { spans, startedAt, truncated, missing } = trace;
  const selected = spans.find(({ id }) => id === query.span) ?? firstToShow(spans);
  const select = (spanId: string): void => route(`${path}?span=${spanId}`, true);
  return (
    <>
      <p>
        <code>{trace.traceId}</code>, <Time ms={startedAt} />, {spans.length}{' '}
        {spans.length === 1 ? 'span' : 'spans'}
      </p>
      {truncated && <p class="advice">The trace is larger than the limit, so spans are missing.</p>}
      {missing.length > 0 && (
        <p class="advice">Spans are missing, because no answer came for: {missing.join(', ')}.</p>
      )}
      <Section title="Waterfall">
        <TraceWaterfall trace={trace} selected={selected?.id} onSelect={select} />
      </Section>
      {selected && <SpanPanel trace={trace} span={selected} everyMs={isSettled ? undefined : POLL_MS} />}
    </>
  );
}

/**
 * A trace is usually opened because of a failure. The innermost failed span is the closest to its cause. The step or
 * attempt around a handler has the message of the handler's error.
 */
function firstToShow(spans: readonly TraceSpan[]): TraceSpan | undefined {
  const failed = spans.filter(({ status, error }) => status === 'failed' && error !== null);
  return failed.findLast(({ kind }) => kind !== 'handler') ?? failed.at(-1) ?? spans[0];
}

function hasSettled({ spans, startedAt, durationMs }: Trace): boolean {
  const isOpen = spans.some(({ status }) => status === 'open');
  return !isOpen && Date.now() - (startedAt + durationMs) > SETTLED_AFTER_MS;
}
