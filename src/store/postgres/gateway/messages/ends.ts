import type { EndedAttempt, FailureChange, UnsentEnd } from '../../../ports/index.ts';
import type { Sql } from '../../named-sql.ts';

/** Unfinished deliveries have no end. A condition on the status would lead to an index with two look-ups per row. */
const END_ATTEMPTS = `
  with e as materialized (
    select * from unnest(:messageIds::text[], :endpointIds::text[], :numbers::integer[], :triggers::text[],
      :started::bigint[], :durations::double precision[], :succeeded::smallint[], :responseStatuses::integer[],
      :excerpts::text[], :errors::text[], :next::bigint[], :statuses::text[], :tries::integer[], :ended::bigint[])
      as e (message_id, endpoint_id, number, "trigger", started_at, duration_ms, succeeded, response_status, excerpt,
        error, next_attempt_at, status, tries, ended_at)
  ), attempts as (
    insert into svc.message_attempt (message_id, endpoint_id, number, "trigger", started_at, duration_ms, succeeded,
      response_status, excerpt, error, next_attempt_at)
    select message_id, endpoint_id, number, "trigger", started_at, duration_ms, succeeded, response_status, excerpt, error,
      next_attempt_at from e
    on conflict do nothing
  ), failures as (
    update svc.outgoing_endpoint o set failing_since = f.since
    from unnest(:failing::text[], :failingSince::bigint[]) as f (id, since) where o.id = f.id
  )
  update svc.message_delivery d set status = e.status, attempts = e.number, tries = e.tries,
    next_attempt_at = e.next_attempt_at, last_status = e.response_status, last_error = e.error, ended_at = e.ended_at
  from e
  where d.message_id = e.message_id and d.endpoint_id = e.endpoint_id and d.ended_at is null`;

const END_UNSENT = `
  update svc.message_delivery d set status = e.status, next_attempt_at = null, last_error = e.error, ended_at = e.ended_at
  from unnest(:messageIds::text[], :endpointIds::text[], :statuses::text[], :errors::text[], :ended::bigint[])
    as e (message_id, endpoint_id, status, error, ended_at)
  where d.message_id = e.message_id and d.endpoint_id = e.endpoint_id and d.ended_at is null`;

export async function endAttempts(
  sql: Sql,
  ends: readonly EndedAttempt[],
  failures: readonly FailureChange[],
): Promise<void> {
  await sql(END_ATTEMPTS, {
    messageIds: ends.map(({ messageId }) => messageId),
    endpointIds: ends.map(({ endpointId }) => endpointId),
    numbers: ends.map(({ number }) => number),
    triggers: ends.map(({ trigger }) => trigger),
    started: ends.map(({ startedAt }) => startedAt),
    durations: ends.map(({ durationMs }) => durationMs),
    succeeded: ends.map(({ succeeded }) => (succeeded ? 1 : 0)),
    responseStatuses: ends.map(({ responseStatus }) => responseStatus),
    excerpts: ends.map(({ excerpt }) => excerpt),
    errors: ends.map(({ error }) => error),
    next: ends.map(({ nextAttemptAt }) => nextAttemptAt),
    statuses: ends.map(({ status }) => status),
    tries: ends.map(({ tries }) => tries),
    ended: ends.map(({ endedAt }) => endedAt),
    failing: failures.map(({ endpointId }) => endpointId),
    failingSince: failures.map(({ failingSince }) => failingSince),
  });
}

export async function endUnsent(sql: Sql, ends: readonly UnsentEnd[]): Promise<void> {
  await sql(END_UNSENT, {
    messageIds: ends.map(({ messageId }) => messageId),
    endpointIds: ends.map(({ endpointId }) => endpointId),
    statuses: ends.map(({ status }) => status),
    errors: ends.map(({ error }) => error),
    ended: ends.map(({ endedAt }) => endedAt),
  });
}
