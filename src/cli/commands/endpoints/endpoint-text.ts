import type { MessageAttempt, OutgoingEndpoint } from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { type ListPage, moreLine } from '../../list-page.ts';
import type { Style } from '../../style.ts';
import { pairs, table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

const REASONS = {
  operator: 'disabled',
  failures: 'disabled: failed for days',
  gone: 'disabled: gone',
} as const;

export function stateText(
  { disabled, disabledReason, failingSince }: OutgoingEndpoint,
  style: Style,
): string {
  if (disabled) return style.red(REASONS[disabledReason ?? 'operator']);
  return failingSince === null ? style.green('active') : style.yellow('failing');
}

/** Formats the share of successes among the newest attempts. */
export function shareText({ recentAttempts: { total, succeeded } }: OutgoingEndpoint): string {
  return total === 0 ? '-' : `${Math.floor((100 * succeeded) / total)}% of ${total}`;
}

export function endpointFacts(endpoint: OutgoingEndpoint, style: Style): string {
  const { id, url, types, application, description, rateLimitPerSecond, headers, ordered, timeoutMs } =
    endpoint;
  const { retrySchedule, failingSince, previousSecretExpiresAt, disabledAt, createdAt } = endpoint;
  const facts: Array<[string, string | null]> = [
    ['endpoint', id],
    ['url', url],
    ['state', stateText(endpoint, style)],
    ['succeeded', endpoint.recentAttempts.total === 0 ? null : `${shareText(endpoint)} attempts`],
    ['types', types.join(', ')],
    ['application', application],
    ['description', description],
    ['rate', rateLimitPerSecond === null ? null : `${rateLimitPerSecond} per second`],
    ['headers', Object.keys(headers).join(', ') || null],
    ['order', ordered ? 'one message at a time' : null],
    ['timeout', formatDuration(timeoutMs)],
    ['retries after', retrySchedule.map((each) => formatDuration(each * 1000)).join(', ') || 'none'],
    ['failing since', failingSince === null ? null : timeText(failingSince)],
    ['disabled at', disabledAt === null ? null : timeText(disabledAt)],
    ['old secret until', previousSecretExpiresAt === null ? null : timeText(previousSecretExpiresAt)],
    ['created', timeText(createdAt)],
  ];
  return pairs(
    facts.filter((fact): fact is [string, string] => fact[1] !== null),
    style,
  );
}

/** Formats a page of attempts. `by` is the column that tells them apart. */
export function attemptsTable(
  { items, nextCursor }: ListPage<MessageAttempt>,
  by: 'messageId' | 'endpointId',
  style: Style,
): string {
  if (items.length === 0) return 'No attempts.';
  const rows = items.map((item) => [
    timeText(item.startedAt),
    outcomeText(item, style),
    String(item.number),
    item.trigger,
    formatDuration(item.durationMs),
    item[by],
    item.type,
    item.error ?? (item.outcome === 'failed' ? (item.responseExcerpt ?? '') : ''),
  ]);
  const head = ['started', 'answer', '#', 'trigger', 'time', by === 'messageId' ? 'message' : 'endpoint'];
  return table([...head, 'type', 'error'], rows, style) + moreLine(nextCursor, style);
}

function outcomeText({ outcome, responseStatus }: MessageAttempt, style: Style): string {
  const text = responseStatus === null ? 'none' : String(responseStatus);
  return outcome === 'succeeded' ? style.green(text) : style.red(text);
}
