import type { RunStep } from '../../../contracts/workflow-records.ts';

export type SpanKind = 'queued' | 'running' | 'waiting' | 'failed';

export interface Span {
  kind: SpanKind;
  from: number;
  to: number;
}

/** A step with the times that its row of the waterfall shows. Every attempt is kept. */
export interface StepRow {
  step: RunStep;
  spans: readonly Span[];
}

/** Returns the rows of the waterfall. `now` ends the spans of what is still in progress. */
export function rowsOf(steps: readonly RunStep[], now: number): StepRow[] {
  return steps.map((step) => ({
    step,
    spans: [...step.history.flatMap(attemptSpans), ...latestSpans(step, now)],
  }));
}

/** Returns the first and the last moment of the rows. */
export function rangeOf(rows: readonly StepRow[], fallback: { from: number; to: number }) {
  const spans = rows.flatMap((row) => row.spans);
  if (spans.length === 0) return fallback;
  const from = Math.min(fallback.from, ...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to));
  return { from, to: Math.max(to, from + 1) };
}

function attemptSpans(attempt: RunStep['history'][number]): Span[] {
  const { queuedAt, startedAt, waitingAt, finishedAt, status } = attempt;
  const kind = status === 'succeeded' ? 'running' : 'failed';
  return spansBetween({ queuedAt, startedAt, waitingAt, finishedAt }, kind);
}

function latestSpans(step: RunStep, now: number): Span[] {
  if (step.history.some(({ attempt }) => attempt === step.attempts)) return [];
  const { queuedAt, readyAt, attemptStartedAt, waitingAt, finishedAt, status } = step;
  const kind = ['failed', 'timed_out', 'interrupted'].includes(status) ? 'failed' : 'running';
  const moments = { queuedAt: queuedAt ?? readyAt, startedAt: attemptStartedAt, waitingAt };
  return spansBetween({ ...moments, finishedAt: finishedAt ?? now }, kind);
}

interface Moments {
  queuedAt: number | null;
  startedAt: number | null;
  waitingAt: number | null;
  finishedAt: number;
}

function spansBetween({ queuedAt, startedAt, waitingAt, finishedAt }: Moments, kind: SpanKind): Span[] {
  const spans: Span[] = [];
  if (queuedAt !== null)
    spans.push({ kind: 'queued', from: queuedAt, to: startedAt ?? waitingAt ?? finishedAt });
  if (startedAt !== null) spans.push({ kind, from: startedAt, to: waitingAt ?? finishedAt });
  if (waitingAt !== null) spans.push({ kind: 'waiting', from: waitingAt, to: finishedAt });
  return spans.filter(({ from, to }) => to >= from);
}
