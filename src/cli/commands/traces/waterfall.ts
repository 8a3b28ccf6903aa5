import type { Trace, TraceSpan } from '../../../contracts/index.ts';
import { oneLine } from '../../../kit/security/escape-controls.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import type { Style } from '../../style.ts';
import { timeText } from '../../time-text.ts';
import { wrap } from '../../wrap.ts';

const BAR_COLUMNS = 20;
const DURATION_COLUMNS = 8;
/** Width of the narrowest waterfall, in which names still have 20 columns. */
const MIN_WIDTH = 52;
const MAX_WIDTH = 120;
/** Deeper spans are indented like this depth. */
const MAX_INDENT_DEPTH = 8;

/** Renders a trace as a tree with a bar for the time of each span. No line is longer than `terminalWidth`. */
export function waterfall(trace: Trace, style: Style, terminalWidth: number): string {
  const width = Math.min(Math.max(terminalWidth, MIN_WIDTH), MAX_WIDTH);
  const { traceId, startedAt, durationMs, spans, truncated, missing } = trace;
  const depths = depthsOf(spans);
  const count = `${spans.length} ${spans.length === 1 ? 'span' : 'spans'}`;
  return [
    `${style.dim('trace')} ${oneLine(traceId)}`,
    style.dim(`${timeText(startedAt)}, ${formatDuration(durationMs)}, ${count}`),
    '',
    ...spans.flatMap((span) => spanLines(span, depths.get(span.id) ?? 0, { trace, style, width })),
    ...(truncated ? ['', style.yellow('Spans are missing: the trace is larger than the limit.')] : []),
    ...(missing.length > 0
      ? ['', style.yellow(`Spans are missing: no answer from the source of ${missing.join(', ')}.`)]
      : []),
  ].join('\n');
}

interface Place {
  trace: Trace;
  style: Style;
  width: number;
}

function spanLines(span: TraceSpan, depth: number, { trace, style, width }: Place): string[] {
  const indent = ' '.repeat(2 * Math.min(depth, MAX_INDENT_DEPTH));
  const columns = width - BAR_COLUMNS - DURATION_COLUMNS - 2;
  const name = cut(`${indent}${span.kind} ${oneLine(span.name)} ${oneLine(span.result)}`, columns);
  const took = span.durationMs === null ? 'open' : shortDuration(span.durationMs);
  const paint = span.status === 'failed' ? style.red : span.status === 'open' ? style.yellow : style.green;
  const line = `${span.status === 'failed' ? style.red(name) : name} ${paint(bar(span, trace))} ${took.padStart(DURATION_COLUMNS)}`;
  const ids = idsOf(span).map((id) => `${indent}  ${id}`);
  const { error } = span;
  const why = error === null ? [] : wrap(`${indent}  ${oneLine(`${error.code}: ${error.message}`)}`, width);
  return [line, ...ids.map((id) => style.dim(id)), ...why.map((text) => style.red(text))];
}

/** Returns the id that leads to the delivery, run or job, below the span that represents it. */
function idsOf({ kind, deliveryId, runId, jobId }: TraceSpan): string[] {
  const id = kind === 'delivery' ? deliveryId : kind === 'run' ? runId : kind === 'job' ? jobId : undefined;
  return id === undefined ? [] : [id];
}

function bar({ startedAt, durationMs }: TraceSpan, trace: Trace): string {
  const scale = trace.durationMs === 0 ? 0 : BAR_COLUMNS / trace.durationMs;
  const offset = startedAt - trace.startedAt;
  const start = Math.min(BAR_COLUMNS - 1, Math.floor(offset * scale));
  const end = offset + (durationMs ?? trace.durationMs - offset);
  const length = Math.max(1, Math.min(BAR_COLUMNS, Math.round(end * scale)) - start);
  return `${'·'.repeat(start)}${'█'.repeat(length)}`.padEnd(BAR_COLUMNS, '·');
}

/** Formats a duration with fractions, because most spans take less than a millisecond. */
function shortDuration(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)}ms` : formatDuration(ms);
}

function cut(text: string, columns: number): string {
  return text.length <= columns ? text.padEnd(columns) : `${text.slice(0, columns - 1)}…`;
}

function depthsOf(spans: readonly TraceSpan[]): Map<string, number> {
  const depths = new Map<string, number>();
  for (const { id, parentId } of spans)
    depths.set(id, parentId === null ? 0 : (depths.get(parentId) ?? -1) + 1);
  return depths;
}
