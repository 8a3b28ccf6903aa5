import { z } from 'zod';
import { type AlertDetails, getAlert } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs, table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/alerts.md */
export const show = defineCommand({
  name: 'alerts show',
  summary: 'Show an alert with its notifications',
  example: 'svc alerts show alert_019ac1f2-7c1e-7a43-b1f0-1f6a2b3c4d5e',
  args: z.object({ id: z.string().min(1).max(64).describe('id of the alert') }),
  positionals: ['id'],
  run: async ({ id }, { client }) => ok(await client.call(getAlert, { params: { id } })),
  text(alert: AlertDetails, style) {
    const facts = pairs(
      [
        ['alert', alert.title],
        ['message', alert.message],
        ['state', alert.state],
        ['kind', `${alert.kind}, ${alert.severity}`],
        ['rule', alert.rule],
        ['count', String(alert.count)],
        ['first', timeText(alert.firstAt)],
        ['last', timeText(alert.lastAt)],
        ['resolved', timeText(alert.resolvedAt)],
        ['acknowledged', alert.acknowledgedBy ?? '-'],
        ['link', alert.link ?? '-'],
      ],
      style,
    );
    const rows = alert.notifications.map(({ channel, reason, status, createdAt, attempts }) => [
      timeText(createdAt),
      channel,
      reason,
      status,
      attempts.at(-1)?.error ?? '',
    ]);
    if (rows.length === 0) return `${facts}\n\nNo notification was made yet.`;
    return `${facts}\n\n${table(['made', 'channel', 'reason', 'status', 'last error'], rows, style)}`;
  },
});
