import type {
  DeliveryStatus,
  WebhookDelivery,
  WebhookDeliveryDetails,
} from '../../../../../contracts/index.ts';
import type { DeliveryRecord } from '../../../../../store/ports/index.ts';
import { shownHeaders } from '../receive/request-head.ts';
import { parseSteps } from '../receive/step-log.ts';

/** Returns the fields of a delivery that lists and streams show. */
export function viewOf(record: DeliveryRecord): WebhookDelivery {
  const { webhookId, pluginId, event, namespaceId, mode, origin, source, receivedAt } = record;
  const { status, httpStatus, durationMs, attempts, nextAttemptAt, bodyBytes } = record;
  const { requestId, traceId, replayOf, replayedBy } = record;
  return {
    webhookId,
    pluginId,
    event,
    instanceId: record.instanceId === '' ? null : record.instanceId,
    namespaceId,
    status,
    httpStatus,
    mode,
    origin,
    source,
    receivedAt,
    durationMs,
    attempts,
    nextAttemptAt,
    bodyBytes,
    requestId,
    traceId,
    replayOf,
    replayedBy,
    reason: reasonOf(record),
  };
}

/** Returns a delivery with all details. The details are for operators only and must not be sent to the sender. */
export function detailsOf(record: DeliveryRecord): WebhookDeliveryDetails {
  const outcome = parse(record.outcome) as { explanation?: WebhookDeliveryDetails['explanation'] } | null;
  const { body, bodyEncoding } = textOf(record.body);
  const steps = parseSteps(record.steps);
  return {
    ...viewOf(record),
    steps: steps.map(({ step, outcome: how, durationMs }) => ({ step, outcome: how, durationMs })),
    attemptHistory: steps.flatMap(({ startedAt, outcome: how, durationMs, error }) =>
      startedAt === undefined
        ? []
        : [{ startedAt: new Date(startedAt).toISOString(), outcome: how, durationMs, error: error ?? null }],
    ),
    headers: shownHeaders(record.headers),
    body,
    bodyEncoding,
    outcome: outcome && 'explanation' in outcome ? null : outcome,
    explanation: outcome?.explanation ?? null,
    replayableUntil: null,
  };
}

const FAILED: ReadonlySet<DeliveryStatus> = new Set(['refused', 'failed', 'dead', 'retrying']);

function reasonOf({ status, outcome }: DeliveryRecord): string | null {
  if (!FAILED.has(status) || outcome === null) return null;
  const { error, explanation } = parse(outcome) as {
    error?: { code?: string; message?: string };
    explanation?: { reason?: string } | null;
  };
  if (explanation !== undefined) return explanation?.reason ?? 'not_authentic';
  return error ? `${error.code}: ${error.message}` : null;
}

/** Returns the body as text if it is UTF-8, otherwise as base64. */
export function textOf(body: Uint8Array | null): { body: string | null; bodyEncoding: 'utf8' | 'base64' } {
  if (body === null) return { body: null, bodyEncoding: 'utf8' };
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes)
    ? { body: text, bodyEncoding: 'utf8' }
    : { body: bytes.toString('base64'), bodyEncoding: 'base64' };
}

function parse(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
