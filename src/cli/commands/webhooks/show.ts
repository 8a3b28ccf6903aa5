import { z } from 'zod';
import { getDelivery, type WebhookDeliveryDetails } from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { unprotected } from '../../../webhooks/schemes/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { pairs, table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { lineWidth, wrapProse } from '../../wrap.ts';
import { statusText } from './delivery-text.ts';

/** @spec docs/webhooks.md "Records" */
export const show = defineCommand({
  name: 'webhooks show',
  summary: 'Show a delivery with its steps, headers, body, outcome and reason of refusal',
  example: 'svc webhooks show 01b8dac5-b5c2-7c27-a83c-4825204b1967',
  idField: 'webhookId',
  args: z.object({ id: z.uuid().describe('delivery id, from X-Webhook-Id') }),
  run: async ({ id }, { client }) => ok(await client.call(getDelivery, { params: { webhookId: id } })),
  text(delivery: WebhookDeliveryDetails, style) {
    const { explanation, outcome, body, bodyBytes, origin, replayOf, replayedBy } = delivery;
    const { replayableUntil, protects } = delivery;
    const facts = pairs(
      [
        ['id', delivery.webhookId],
        [
          'webhook',
          `${delivery.pluginId} ${delivery.event}${delivery.instanceId === null ? '' : `/${delivery.instanceId}`}`,
        ],
        ...(protects
          ? [['not protected', unprotected(protects).join(', ') || 'nothing'] as [string, string]]
          : []),
        ['status', statusText(delivery.status, style)],
        ['response', String(delivery.httpStatus ?? '-')],
        ['received', `${timeText(delivery.receivedAt)} from ${delivery.source}`],
        [
          'attempts',
          `${delivery.attempts}${delivery.nextAttemptAt === null ? '' : `, next ${timeText(delivery.nextAttemptAt)}`}`,
        ],
        ['request id', delivery.requestId],
        ['trace', delivery.traceId],
        ...(replayOf
          ? [[origin === 'replay' ? 'replay of' : 'received as', replayOf] as [string, string]]
          : []),
        ...(replayedBy ? [['replayed by', replayedBy] as [string, string]] : []),
      ],
      style,
    );
    return [
      facts,
      ...(explanation
        ? [
            section(
              'why',
              wrapProse(`${style.red(explanation.reason)}: ${explanation.hint}`, lineWidth(process.stdout)),
              style,
            ),
          ]
        : []),
      ...(replayableUntil === null
        ? []
        : [
            section(
              'next',
              `Correct the cause, then replay it until ${timeText(replayableUntil)}: svc webhooks replay ${delivery.webhookId}`,
              style,
            ),
          ]),
      section('steps', stepsText(delivery, style), style),
      ...(delivery.attemptHistory.length > 0
        ? [section('attempts', attemptsText(delivery, style), style)]
        : []),
      section('headers', delivery.headers.map(([name, value]) => `${name}: ${value}`).join('\n'), style),
      section('body', body ?? (bodyBytes === 0 ? '(empty)' : `(${bodyBytes} bytes, not stored)`), style),
      ...(outcome ? [section('outcome', JSON.stringify(outcome, null, 2), style)] : []),
    ].join('\n\n');
  },
});

function section(title: string, text: string, style: Style): string {
  return `${style.bold(title)}\n${text}`;
}

/** Formats the duration of a step with fractions, because most steps take less than a millisecond. */
function stepDuration(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)}ms` : formatDuration(ms);
}

function stepsText({ steps }: WebhookDeliveryDetails, style: Style): string {
  const rows = steps.map(({ step, outcome, durationMs }) => [step, outcome, stepDuration(durationMs)]);
  return table(['step', 'outcome', 'duration'], rows, style);
}

function attemptsText({ attemptHistory }: WebhookDeliveryDetails, style: Style): string {
  const rows = attemptHistory.map(({ startedAt, outcome, durationMs, error }, index) => [
    String(index + 1),
    timeText(Date.parse(startedAt)),
    outcome,
    stepDuration(durationMs),
    error ?? '',
  ]);
  return table(['attempt', 'started', 'outcome', 'duration', 'error'], rows, style);
}
