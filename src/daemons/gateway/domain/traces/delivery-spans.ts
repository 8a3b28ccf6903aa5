import type { TraceSpan } from '../../../../contracts/index.ts';
import { derivedSpanId, spanIdOf } from '../../../../kit/telemetry/trace.ts';
import type { DeliveryRecord } from '../../../../store/ports/index.ts';
import { parseSteps, type StepOutcome } from '../webhooks/receive/step-log.ts';

const OPEN = new Set(['accepted', 'running', 'retrying']);
const FAILED = new Set(['refused', 'failed', 'dead', 'interrupted']);
/** Statuses of deliveries that no handler gets. */
const UNHANDLED = new Set(['refused', 'challenge', 'duplicate']);

/** Returns the spans of a delivery: the delivery itself, its verdict and its attempts. */
export function deliverySpans(record: DeliveryRecord): TraceSpan[] {
  const steps = parseSteps(record.steps);
  const verdict = verdictOf(record, steps);
  const attempts = attemptsOf(record, steps, verdict);
  const ends = [verdict, ...attempts].map(({ startedAt, durationMs }) => startedAt + (durationMs ?? 0));
  const isOpen = OPEN.has(record.status);
  const delivery: TraceSpan = {
    ...partOf(record),
    id: deliverySpanId(record),
    parentId: null,
    kind: 'delivery',
    name: `${record.pluginId} ${record.event}`,
    startedAt: record.receivedAt,
    durationMs: isOpen ? null : Math.max(...ends, record.receivedAt) - record.receivedAt,
    status: isOpen ? 'open' : FAILED.has(record.status) ? 'failed' : 'ok',
    result: record.status,
    error: FAILED.has(record.status) ? errorOf(record) : null,
    attributes: {
      mode: record.mode,
      origin: record.origin,
      source: record.source,
      attempts: record.attempts,
      ...(record.httpStatus === null ? {} : { httpStatus: record.httpStatus }),
    },
  };
  return [delivery, verdict, ...attempts];
}

/** Returns the span id of a delivery. It is also the span id of the request that sent the delivery. */
export function deliverySpanId({ webhookId }: Pick<DeliveryRecord, 'webhookId'>): string {
  return spanIdOf(webhookId);
}

function partOf(record: DeliveryRecord) {
  const { webhookId: deliveryId, requestId, pluginId } = record;
  return { service: 'gateway', deliveryId, requestId, pluginId };
}

/** Returns the span of the checks before the handler: route, limits, idempotency and authentication. */
function verdictOf(record: DeliveryRecord, steps: readonly StepOutcome[]): TraceSpan {
  const checks = steps.filter(({ step }) => step !== 'dispatch');
  const isRefused = record.status === 'refused';
  return {
    ...partOf(record),
    id: derivedSpanId(record.webhookId, 'verdict'),
    parentId: deliverySpanId(record),
    kind: 'verdict',
    name: 'checks',
    startedAt: record.receivedAt,
    durationMs: checks.reduce((sum, { durationMs }) => sum + durationMs, 0),
    status: isRefused ? 'failed' : 'ok',
    result: UNHANDLED.has(record.status) ? record.status : 'accepted',
    error: isRefused ? errorOf(record) : null,
    attributes: Object.fromEntries(
      checks.map(({ step, outcome, durationMs }) => [step, `${outcome} in ${durationMs} ms`]),
    ),
  };
}

function attemptsOf(record: DeliveryRecord, steps: readonly StepOutcome[], verdict: TraceSpan): TraceSpan[] {
  const dispatches = steps.filter(({ step, startedAt }) =>
    record.mode === 'sync' ? step === 'dispatch' : startedAt !== undefined,
  );
  return dispatches.map(({ outcome, durationMs, startedAt, error }, index) => {
    const failed = outcome !== 'ok' && outcome !== 'succeeded';
    const known = record.mode === 'sync' ? errorOf(record) : error === undefined ? null : errorIn(error);
    return {
      ...partOf(record),
      id: derivedSpanId(record.webhookId, 'attempt', index + 1),
      parentId: deliverySpanId(record),
      kind: 'attempt' as const,
      name: String(index + 1),
      startedAt: startedAt ?? verdict.startedAt + verdict.durationMs!,
      durationMs,
      status: failed ? ('failed' as const) : ('ok' as const),
      result: outcome,
      error: failed ? known : null,
      attributes: {},
    };
  });
}

/** Returns the error of a text such as `EXECUTION_ERROR: no`. */
function errorIn(text: string): TraceSpan['error'] {
  const [, code = 'EXECUTION_ERROR', message = text] = /^([A-Z][A-Z0-9_]*): (.*)$/s.exec(text) ?? [];
  return { code, message };
}

interface Outcome {
  error?: { code?: string; message?: string };
  explanation?: { reason: string; hint: string } | null;
}

function errorOf({ outcome, status }: DeliveryRecord): TraceSpan['error'] {
  const { error, explanation } = (outcome === null ? {} : JSON.parse(outcome)) as Outcome;
  if (explanation) return { code: explanation.reason, message: explanation.hint };
  if (error) return { code: error.code ?? 'EXECUTION_ERROR', message: error.message ?? '' };
  return { code: status, message: `The delivery is ${status}.` };
}
