import type { AlertChannelSettings } from '../../../../../contracts/index.ts';
import { type ChannelCall, type ChannelTools, post, SENT, type SendResult } from './channel-sender.ts';
import { footer, linkOf, plain, restOf, titleOf } from './notification-text.ts';

type Settings = Extract<AlertChannelSettings, { type: 'pagerduty' }>;

const MAX_SUMMARY_CHARS = 1024;
const MAX_LINKS = 5;

/**
 * Returns the event of PagerDuty's Events API v2. All notifications of an incident have one `dedup_key`. Returns undefined
 * while other alerts of the incident still fire, because a `trigger` would open an incident again that people have closed.
 */
function pagerdutyEvent({ notification, secret, publicUrl }: ChannelCall<Settings>): object | undefined {
  const { reason, incident, firing, severity, kind, rule, alerts, createdAt } = notification;
  const common = { routing_key: secret, dedup_key: incident };
  if (reason === 'resolved') return firing === 0 ? { ...common, event_action: 'resolve' } : undefined;
  const rest = restOf(notification);
  return {
    ...common,
    event_action: 'trigger',
    client: 'svc',
    client_url: `${publicUrl}/studio/alerts`,
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
  const event = pagerdutyEvent(call);
  if (!event) return SENT(null);
  const body = JSON.stringify(event);
  const { ok, status, error } = await post(tools, { url: settings.url, body, mayBePrivate });
  // 400: PagerDuty refuses the event itself, for example because of the routing key.
  return { ok, status, error, isFinal: status === 400 };
}
