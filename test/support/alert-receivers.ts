import { z } from 'zod';
import { type Receiver, startReceiver } from './source-senders.ts';

const dedup_key = z.string().min(1).max(255);
const routing_key = z.string().length(32);
/** https://developer.pagerduty.com/docs/events-api-v2/trigger-events/. Unknown fields are refused to find typing errors. */
const PagerdutyEvent = z.discriminatedUnion('event_action', [
  z.strictObject({
    ...{ event_action: z.literal('trigger'), routing_key, dedup_key },
    client: z.string(),
    client_url: z.url(),
    payload: z.strictObject({
      summary: z.string().min(1).max(1024),
      source: z.string().min(1),
      severity: z.enum(['critical', 'warning', 'error', 'info']),
      timestamp: z.iso.datetime(),
      class: z.string(),
      group: z.string(),
      custom_details: z.record(z.string(), z.unknown()),
    }),
    links: z.array(z.strictObject({ href: z.url(), text: z.string() })),
  }),
  z.strictObject({ event_action: z.literal('acknowledge'), routing_key, dedup_key }),
  z.strictObject({ event_action: z.literal('resolve'), routing_key, dedup_key }),
]);
const MAX_EVENT_BYTES = 512 * 1024;

export interface Incident {
  key: string;
  status: 'triggered' | 'resolved';
  summary: string;
  links: string[];
  /** Number of `trigger` events. */
  triggers: number;
}

export interface Pagerduty extends Receiver {
  incidents: Incident[];
}

/** A server that validates events and keeps incidents as PagerDuty's Events API v2 does. */
export async function startPagerduty(knownKey: string): Promise<Pagerduty> {
  const incidents: Incident[] = [];
  const receiver = await startReceiver();
  const json = (status: number, body: object) => ({ status, body: JSON.stringify(body) });
  const invalid = (errors: string[]) =>
    json(400, { status: 'invalid event', message: 'Event object is invalid', errors });
  receiver.answer = ({ url, method, headers, body }) => {
    if (method !== 'POST' || url !== '/v2/enqueue') return json(404, {});
    if (headers['content-type'] !== 'application/json') return json(415, {});
    if (body.byteLength > MAX_EVENT_BYTES) return json(413, {});
    const parsed = PagerdutyEvent.safeParse(JSON.parse(body.toString()));
    if (!parsed.success)
      return invalid(parsed.error.issues.map(({ path, message }) => `${path}: ${message}`));
    const event = parsed.data;
    if (event.routing_key !== knownKey) return invalid(['Invalid routing key']);
    const open = incidents.find(({ key, status }) => key === event.dedup_key && status === 'triggered');
    if (event.event_action === 'resolve' && open) open.status = 'resolved';
    if (event.event_action === 'trigger') {
      if (open) open.triggers++;
      else {
        const { dedup_key: key, payload, links } = event;
        const shown = { summary: payload.summary, links: links.map(({ href }) => href) };
        incidents.push({ key, status: 'triggered', triggers: 1, ...shown });
      }
    }
    return json(202, { status: 'success', message: 'Event processed', dedup_key: event.dedup_key });
  };
  return Object.assign(receiver, { incidents });
}

const plainText = (max: number) =>
  z.strictObject({ type: z.literal('plain_text'), text: z.string().min(1).max(max), emoji: z.boolean() });
const mrkdwn = z.strictObject({
  ...{ type: z.literal('mrkdwn'), text: z.string().min(1).max(3000), verbatim: z.boolean() },
});
/** https://docs.slack.dev/reference/block-kit/blocks and its limits. */
const SlackBlock = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('header'), text: plainText(150) }),
  z.strictObject({ type: z.literal('section'), text: mrkdwn }),
  z.strictObject({ type: z.literal('context'), elements: z.array(plainText(3000)).min(1).max(10) }),
]);
const SlackMessage = z.strictObject({
  text: z.string().min(1).max(40_000),
  attachments: z
    .array(
      z.strictObject({
        color: z.string().regex(/^#[0-9a-f]{6}$/),
        fallback: z.string(),
        blocks: z.array(SlackBlock).min(1).max(50),
      }),
    )
    .max(100),
});
export type SlackMessage = z.infer<typeof SlackMessage>;

export interface Slack extends Receiver {
  /** URL of the incoming webhook. */
  hook: string;
  messages: SlackMessage[];
}

/** A server that answers as incoming webhooks of Slack do: `ok`, or a code of the error. */
export async function startSlack(token = 'B0/slack-token'): Promise<Slack> {
  const messages: SlackMessage[] = [];
  const receiver = await startReceiver();
  const path = `/services/T0/${token}`;
  receiver.answer = ({ url, body }) => {
    if (url !== path) return { status: 404, body: 'no_service' };
    const parsed = SlackMessage.safeParse(JSON.parse(body.toString()));
    if (!parsed.success) return { status: 400, body: 'invalid_blocks' };
    messages.push(parsed.data);
    return { status: 200, body: 'ok' };
  };
  return Object.assign(receiver, { hook: receiver.url + path, messages });
}
