import {
  type EndedAttempt,
  type FailureChange,
  isUnsent,
  type NewStoredMessage,
  type UnsentEnd,
} from '../../../ports/index.ts';
import type { Step, Unit } from '../committer/protocol.ts';

/** Statements of the committer thread, by name. No journal contains them, so they may change. */
const STATEMENTS = {
  /** Changes no row if the key belongs to an earlier message and has not expired. */
  claimMessageKey: `insert into message_key (digest, message_id, content, expires_at) values (?, ?, ?, ?)
    on conflict (digest) do update set message_id = excluded.message_id, content = excluded.content,
      expires_at = excluded.expires_at where message_key.expires_at <= ?`,
  addMessage: `insert into message (id, namespace_id, application, type, timestamp, created_at, trace_id, body_bytes, body)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  addMessageDelivery: `insert into message_delivery (message_id, endpoint_id, namespace_id, status)
    values (?, ?, ?, 'waiting')`,
  addMessageAttempt: `insert into message_attempt (message_id, endpoint_id, number, "trigger", started_at, duration_ms,
      succeeded, response_status, excerpt, error, next_attempt_at)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
  endMessageAttempt: `update message_delivery set status = ?, attempts = ?, tries = ?, next_attempt_at = ?, last_status = ?,
      last_error = ?, ended_at = ?
    where message_id = ? and endpoint_id = ? and ended_at is null`,
  endMessageUnsent: `update message_delivery set status = ?, next_attempt_at = null, last_error = ?, ended_at = ?
    where message_id = ? and endpoint_id = ? and ended_at is null`,
  setEndpointFailing: 'update outgoing_endpoint set failing_since = ? where id = ?',
};

export const MESSAGE_STATEMENTS: Readonly<Record<string, string>> = STATEMENTS;

type Name = keyof typeof STATEMENTS;
const step = (name: Name, ...values: Step[1]): Step => [name, values];

/** Stores a message with its deliveries. Its first step changes no row if the key belongs to an earlier message. */
export function publishUnit(message: NewStoredMessage): Unit {
  const { id, createdAt, key } = message;
  if (!key) return { guarded: false, steps: messageSteps(message) };
  const claim = step('claimMessageKey', key.digest, id, key.content, key.expiresAt, createdAt);
  return { guarded: true, steps: [claim, ...messageSteps(message)] };
}

/** Stores a message with an attempt that was made already. */
export function testUnit(message: NewStoredMessage, attempt: EndedAttempt): Unit {
  return { guarded: false, steps: [...messageSteps(message), ...attemptSteps(attempt)] };
}

export function endUnit(
  ends: ReadonlyArray<EndedAttempt | UnsentEnd>,
  failures: readonly FailureChange[],
): Unit {
  const changes = failures.map(({ endpointId, failingSince }) =>
    step('setEndpointFailing', failingSince, endpointId),
  );
  return { guarded: false, steps: [...ends.flatMap(endSteps), ...changes] };
}

function messageSteps(message: NewStoredMessage): Step[] {
  const { id, namespaceId, application, type, timestamp, createdAt, traceId, body, endpointIds } = message;
  const values = [id, namespaceId, application, type, timestamp, createdAt, traceId, body.byteLength, body];
  return [
    step('addMessage', ...values),
    ...endpointIds.map((endpointId) => step('addMessageDelivery', id, endpointId, namespaceId)),
  ];
}

function endSteps(end: EndedAttempt | UnsentEnd): Step[] {
  if (!isUnsent(end)) return attemptSteps(end);
  const { status, error, endedAt, messageId, endpointId } = end;
  return [step('endMessageUnsent', status, error, endedAt, messageId, endpointId)];
}

function attemptSteps(attempt: EndedAttempt): Step[] {
  const { messageId, endpointId, number, trigger, startedAt, durationMs, succeeded } = attempt;
  const { responseStatus, excerpt, error, nextAttemptAt, status, tries, endedAt } = attempt;
  const made = [messageId, endpointId, number, trigger, startedAt, durationMs, Number(succeeded)];
  const state = [status, number, tries, nextAttemptAt, responseStatus, error, endedAt];
  return [
    step('addMessageAttempt', ...made, responseStatus, excerpt, error, nextAttemptAt),
    step('endMessageAttempt', ...state, messageId, endpointId),
  ];
}
