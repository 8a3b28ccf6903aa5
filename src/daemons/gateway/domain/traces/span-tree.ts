import type { TraceSpan } from '../../../../contracts/index.ts';

/** Kinds of spans that belong to an attempt if their parent is a delivery. */
const OF_ATTEMPT = new Set(['handler', 'request', 'run', 'job']);
/** Tolerance when start times of several processes are compared. */
const CLOCK_TOLERANCE_MS = 2;

/**
 * Orders spans so that each parent comes before its children, and siblings by their start. A span whose parent is
 * unknown becomes a root. Of spans with the same id, the first is kept.
 */
export function orderSpans(spans: readonly TraceSpan[]): TraceSpan[] {
  const byId = new Map<string, TraceSpan>();
  for (const span of spans) if (!byId.has(span.id)) byId.set(span.id, span);
  const attempts = Map.groupBy(
    spans.filter(({ kind }) => kind === 'attempt'),
    ({ parentId }) => parentId,
  );
  const deliveries = new Map(
    spans.filter(({ kind }) => kind === 'delivery').map((span) => [span.requestId, span.id]),
  );

  const senders = new Map(spans.filter(isOfGateway).map((span) => [span.requestId, span.id]));

  /** Returns the parent by request id. Deliveries of samples and replays have no span that others could name. */
  function parentOfRequest({ kind, service, requestId }: TraceSpan): string | undefined {
    if (kind === 'delivery') return senders.get(requestId);
    return kind === 'handler' || (kind === 'request' && service !== 'gateway')
      ? deliveries.get(requestId)
      : undefined;
  }

  function parentOf(span: TraceSpan): string | null {
    const isKnown = span.parentId !== null && byId.has(span.parentId);
    const parentId = isKnown ? span.parentId : (parentOfRequest(span) ?? null);
    if (parentId === null || parentId === span.id || !byId.has(parentId)) return null;
    if (!OF_ATTEMPT.has(span.kind)) return parentId;
    const around = attempts
      .get(parentId)
      ?.findLast(({ startedAt }) => startedAt <= span.startedAt + CLOCK_TOLERANCE_MS);
    return around?.id ?? parentId;
  }

  const linked = [...byId.values()].map((span) => ({ ...span, parentId: parentOf(span) }));
  const children = Map.groupBy(linked.toSorted(compareStart), ({ parentId }) => parentId);
  const ordered: TraceSpan[] = [];
  const seen = new Set<string>();
  const visit = (roots: readonly TraceSpan[]): void => {
    const stack = roots.toReversed();
    for (let span = stack.pop(); span; span = stack.pop()) {
      if (seen.has(span.id)) continue;
      seen.add(span.id);
      ordered.push(span);
      stack.push(...(children.get(span.id) ?? []).toReversed());
    }
  };
  visit(children.get(null) ?? []);
  // Spans whose parents form a cycle are reachable from no root. The ids in `traceparent` come from clients.
  for (const span of linked) if (!seen.has(span.id)) visit([{ ...span, parentId: null }]);
  return ordered;
}

function isOfGateway({ kind, service }: TraceSpan): boolean {
  return kind === 'request' && service === 'gateway';
}

function compareStart(a: TraceSpan, b: TraceSpan): number {
  return a.startedAt - b.startedAt;
}
