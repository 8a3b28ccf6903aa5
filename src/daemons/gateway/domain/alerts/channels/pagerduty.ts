import type { AlertChannelSettings } from '../../../../../contracts/index.ts';
import { type ChannelCall, type ChannelTools, post, type SendResult } from './channel-sender.ts';
import { footer, linkOf, plain, restOf, titleOf } from './notification-text.ts';

type Settings = Extract<AlertChannelSettings, { type: 'pagerduty' }>;

const MAX_SUMMARY_CHARS = 1024;
const MAX_LINKS = 5;

/** Returns the event of PagerDuty's Events API v2. All notifications of an incident have one `dedup_key`. */
export function pagerdutyEvent({ notification, secret, publicUrl }: ChannelCall<Settings>): object {
  const { reason, incident, firing, severity, kind, rule, alerts, createdAt } = notification;
  const common = {
    routing_key: secret,
    dedup_key: incident,
    client: 'svc',
    client_url: `${publicUrl}/studio/alerts`,
  };
  if (reason === 'resolved' && firing === 0) return { ...common, event_action: 'resolve' };
  const rest = restOf(notification);
  return {
    ...common,
    event_action: 'trigger',
    payload: {
      summary: plain(titleOf(notification), MAX_SUMMARY_CHARS),
      source: alerts[0]?.object.id ?? rule,
      severity,
      timestamp: new Date(createdAt).toISOString(),
      class: kind,
      group: rule,
      custom_details: {
        about: footer(notification),
        alerts: alerts.map(({ title, message, count }) => ({ title, message, count })),
        ...(rest === undefined ? {} : { rest }),
      },
    },
    links: alerts.slice(0, MAX_LINKS).map((alert) => ({
      href: linkOf(publicUrl, alert),
      text: plain(alert.title, 200),
    })),
  };
}

export async function sendPagerduty(call: ChannelCall<Settings>, tools: ChannelTools): Promise<SendResult> {
  const { settings, mayBePrivate } = call;
  const body = JSON.stringify(pagerdutyEvent(call));
  const { ok, status, error } = await post(tools, { url: settings.url, body, mayBePrivate });
  // 400: PagerDuty refuses the event itself, for example because of the routing key.
  return { ok, status, error, isFinal: status === 400 };
}
