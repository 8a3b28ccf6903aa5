import type { WebhookDelivery } from '../../../contracts/index.ts';
import { oneLine } from '../../../kit/security/escape-controls.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import type { Style } from '../../style.ts';
import { timeText } from '../../time-text.ts';

const SUCCESS_STATUSES = new Set(['succeeded', 'challenge', 'duplicate']);
const OPEN_STATUSES = new Set(['accepted', 'running', 'retrying']);

export function statusText(status: WebhookDelivery['status'], style: Style): string {
  if (SUCCESS_STATUSES.has(status)) return style.green(status);
  return OPEN_STATUSES.has(status) ? style.yellow(status) : style.red(status);
}

/** Formats a delivery as one line of `webhooks tail`. */
export function deliveryLine(delivery: WebhookDelivery, style: Style): string {
  const { receivedAt, status, httpStatus, pluginId, event, instanceId, webhookId, durationMs, reason } =
    delivery;
  return [
    style.dim(timeText(receivedAt)),
    statusText(status, style),
    httpStatus ?? '',
    `${pluginId} ${event}${instanceId === null ? '' : `/${instanceId}`}`,
    durationMs === null ? '' : style.dim(formatDuration(durationMs)),
    style.dim(webhookId),
    oneLine(reason ?? ''),
  ]
    .filter((part) => part !== '')
    .join('  ');
}
