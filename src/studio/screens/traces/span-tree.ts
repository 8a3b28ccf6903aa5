import type { Trace, TraceSpan } from '../../../contracts/traces.ts';

/** A span with its place in the waterfall. */
export interface SpanRow {
  span: TraceSpan;
  depth: number;
  /** Start and length in thousandths of the trace. */
  x: number;
  width: number;
}

const SCALE = 1000;
const MIN_WIDTH = 4;

/** Returns the rows of a waterfall. The spans already stand in their order, parents before children. */
export function spanRows({ spans, startedAt, durationMs }: Trace): SpanRow[] {
  const depths = new Map<string, number>();
  const scale = durationMs === 0 ? 0 : SCALE / durationMs;
  return spans.map((span) => {
    const depth = span.parentId === null ? 0 : (depths.get(span.parentId) ?? -1) + 1;
    depths.set(span.id, depth);
    const offset = span.startedAt - startedAt;
    const length = span.durationMs ?? durationMs - offset;
    const x = Math.min(offset * scale, SCALE - MIN_WIDTH);
    return { span, depth, x, width: Math.max(MIN_WIDTH, Math.min(length * scale, SCALE - x)) };
  });
}

/** Returns the ids of a span and of all spans below it. */
export function idsBelow({ spans }: Trace, root: TraceSpan): ReadonlySet<string> {
  const ids = new Set([root.id]);
  for (const { id, parentId } of spans) if (parentId !== null && ids.has(parentId)) ids.add(id);
  return ids;
}
