import type { AlertChannelSettings } from '../../../../../contracts/index.ts';
import { signedHeaders, webhookKeyOf } from '../../../../../kit/security/standard-webhooks.ts';
import { type ChannelCall, type ChannelTools, post, type SendResult } from './channel-sender.ts';
import { linkOf } from './notification-text.ts';

type Settings = Extract<AlertChannelSettings, { type: 'webhook' }>;

/** Sends a notification as a message of Standard Webhooks. @spec docs/alerts.md */
export async function sendWebhook(call: ChannelCall<Settings>, tools: ChannelTools): Promise<SendResult> {
  const { settings, secret = '', notification, publicUrl, now, mayBePrivate } = call;
  const { id, reason, rule, kind, severity, incident, firing, total, uncounted, alerts, createdAt } =
    notification;
  const body = JSON.stringify({
    type: notification.isTest ? 'alert.test' : `alert.${reason}`,
    timestamp: new Date(createdAt).toISOString(),
    data: {
      ...{ rule, kind, severity, incident, firing, total, uncounted },
      alerts: alerts.map((alert) => {
        const { path: _, ...listed } = alert;
        return { ...listed, link: linkOf(publicUrl, alert) };
      }),
    },
  });
  const headers = signedHeaders([webhookKeyOf(secret)], { id, at: now, body });
  const result = await post(tools, { url: settings.url, body, headers, mayBePrivate });
  // Standard Webhooks: 410 Gone means that the receiver wants no more messages.
  return { ok: result.ok, status: result.status, error: result.error, isFinal: result.status === 410 };
}
