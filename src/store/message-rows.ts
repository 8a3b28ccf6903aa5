import type { DisabledReason, MessageStatus } from '../contracts/index.ts';
import type {
  EndpointChanges,
  MessageCountsRecord,
  MessageFilter,
  MessagePage,
  MessageRecord,
  StoredEndpoint,
} from './ports/index.ts';

/** An endpoint as both drivers store it: lists are JSON. */
export interface EndpointRow
  extends Omit<StoredEndpoint, 'types' | 'retrySchedule' | 'ordered' | 'publicOnly'> {
  types: string;
  retrySchedule: string | null;
  /** 0 or 1. */
  ordered: number;
  publicOnly: number;
}

export function endpointOf({
  types,
  retrySchedule,
  ordered,
  publicOnly,
  ...row
}: EndpointRow): StoredEndpoint {
  return {
    ...row,
    types: JSON.parse(types) as string[],
    retrySchedule: retrySchedule === null ? null : (JSON.parse(retrySchedule) as number[]),
    ordered: ordered === 1,
    publicOnly: publicOnly === 1,
    disabledReason: row.disabledReason as DisabledReason | null,
  };
}

export function endpointRow({
  types,
  retrySchedule,
  ordered,
  publicOnly,
  ...endpoint
}: StoredEndpoint): EndpointRow {
  return {
    ...endpoint,
    types: JSON.stringify(types),
    retrySchedule: retrySchedule && JSON.stringify(retrySchedule),
    ordered: ordered ? 1 : 0,
    publicOnly: publicOnly ? 1 : 0,
  };
}

/** Applies the changes that are given. */
export function changedEndpoint(endpoint: StoredEndpoint, changes: EndpointChanges): StoredEndpoint {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  return { ...endpoint, ...(Object.fromEntries(given) as EndpointChanges) };
}

/** Columns of a message without its body. */
export const MESSAGE_COLUMNS = `m.id, m.namespace_id as "namespaceId", m.application, m.type, m.timestamp,
  m.created_at as "createdAt", m.body_bytes as "bodyBytes", m.trace_id as "traceId"`;

export const DELIVERY_COLUMNS = `d.message_id as "messageId", d.endpoint_id as "endpointId", d.status, d.attempts,
  d.next_attempt_at as "nextAttemptAt", d.last_status as "lastStatus", d.last_error as "lastError", d.ended_at as "endedAt"`;

export const DUE_COLUMNS = `message_id as "messageId", endpoint_id as "endpointId", attempts, tries,
  is_replay as "isReplay", next_attempt_at as "nextAttemptAt"`;

export const ATTEMPT_COLUMNS = `a.message_id as "messageId", a.endpoint_id as "endpointId", m.application, m.type, a.number,
  a."trigger", a.started_at as "startedAt", a.duration_ms as "durationMs", a.succeeded,
  a.response_status as "responseStatus", a.excerpt, a.error, a.next_attempt_at as "nextAttemptAt"`;

export type MessageRow = Omit<MessageRecord, 'counts'>;
export interface CountRow {
  messageId: string;
  status: MessageStatus;
  count: number;
}

/** Maximum number of messages that a page with a filter examines, so that a list never reads all messages. */
const MAX_EXAMINED = 2000;

/** Returns the number of messages to examine for a page. */
export function windowOf({ type, application, status, traceId, limit }: MessageFilter): number {
  const isFiltered =
    type !== undefined || application !== undefined || traceId !== undefined || status === 'succeeded';
  return isFiltered ? Math.max(MAX_EXAMINED, limit + 1) : limit + 1;
}

/** Returns the conditions that the query of ids has not applied, so that the query of messages must apply them. */
export function remainingOf({ status, endpointId, traceId }: MessageFilter): {
  status: MessageStatus | null;
  endpointId: string | null;
} {
  const isByTrace = traceId !== undefined;
  return {
    status: isByTrace || status === 'succeeded' ? (status ?? null) : null,
    endpointId: isByTrace || status === 'succeeded' ? (endpointId ?? null) : null,
  };
}

/** Counts the newest attempts of an endpoint and the failed ones among them. Both counts read an index alone. */
export const recentAttemptsOf = (table: string, endpoint: string): string => {
  const key = 'started_at, message_id, number';
  const order = 'order by started_at desc, message_id desc, number desc limit :max';
  const ended = (succeeded: number) => `select * from (select succeeded, ${key} from ${table}
    where endpoint_id = ${endpoint} and succeeded = ${succeeded} ${order}) as ended_${succeeded}`;
  const newest = `(select succeeded from (${ended(0)} union all ${ended(1)}) as ended ${order}) as newest`;
  return `(select count(*) from ${newest}) as attempts,
    (select count(*) from ${newest} where succeeded = 0) as failed`;
};

/** Makes a page from the examined ids and the messages among them that match, both newest first. */
export function messagePage(
  filter: MessageFilter,
  examined: readonly string[],
  rows: readonly MessageRow[],
  counts: readonly CountRow[],
): MessagePage {
  const shown = rows.slice(0, filter.limit);
  const items = withCounts(shown, counts);
  if (rows.length > filter.limit) return { items, next: shown.at(-1)!.id };
  return { items, next: examined.length < windowOf(filter) ? null : examined.at(-1)! };
}

export function withCounts(rows: readonly MessageRow[], counts: readonly CountRow[]): MessageRecord[] {
  const byId = new Map(rows.map((row) => [row.id, { ...row, counts: noCounts() }]));
  for (const { messageId, status, count } of counts) {
    const message = byId.get(messageId);
    if (message) message.counts[status] = count;
  }
  return [...byId.values()];
}

function noCounts(): MessageCountsRecord {
  return { waiting: 0, retrying: 0, succeeded: 0, dead: 0, cancelled: 0 };
}
