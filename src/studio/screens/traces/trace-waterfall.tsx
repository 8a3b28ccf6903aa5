import type { Trace, TraceSpan } from '../../../contracts/traces.ts';
import { durationText } from '../../ui/time.tsx';
import { spanRows } from './span-tree.ts';

const LEGEND = { ok: 'ended well', open: 'in progress', failed: 'failed' };
const CLASSES = { ok: 'running', open: 'waiting', failed: 'failed' };
const SIGNS = { ok: '✓', open: '▸', failed: '✕' };
const MAX_INDENT = 8;

interface TraceWaterfallProps {
  trace: Trace;
  selected: string | undefined;
  onSelect: (spanId: string) => void;
}

/** Spans of a trace on a common time axis, indented below their parents. */
export function TraceWaterfall({ trace, selected, onSelect }: TraceWaterfallProps) {
  return (
    <div class="waterfall spans">
      <ul>
        {spanRows(trace).map(({ span, depth, x, width }) => (
          <li key={span.id}>
            <button type="button" aria-pressed={span.id === selected} onClick={() => onSelect(span.id)}>
              <span class="label" style={{ paddingInlineStart: `${Math.min(depth, MAX_INDENT) * 0.8}rem` }}>
                <span aria-hidden="true">{SIGNS[span.status]}</span> <span class="kind">{span.kind}</span>{' '}
                {span.name}
              </span>
              <svg
                class="bars"
                viewBox="0 0 1000 12"
                preserveAspectRatio="none"
                role="img"
                aria-label={textOf(span)}
              >
                <rect class={CLASSES[span.status]} x={x} width={width} y={1} height={10} />
              </svg>
            </button>
          </li>
        ))}
      </ul>
      <p class="legend">
        {Object.entries(LEGEND).map(([status, text]) => (
          <span key={status} class={CLASSES[status as TraceSpan['status']]}>
            {text}
          </span>
        ))}
        <span class="number">{durationText(trace.durationMs)} in all</span>
      </p>
    </div>
  );
}

function textOf({ durationMs, result, status }: TraceSpan): string {
  return `${LEGEND[status]}: ${result}${durationMs === null ? '' : `, ${durationText(durationMs)}`}`;
}
