import type { AlertChannelSettings } from '../../../../../contracts/index.ts';
import type { OutgoingClient } from '../../../../outgoing/outgoing-client.ts';
import type { Notification } from '../notification.ts';

export interface ChannelCall<Settings extends AlertChannelSettings = AlertChannelSettings> {
  settings: Settings;
  /** The secret of the channel, or undefined for a mail server without authentication. */
  secret: string | undefined;
  notification: Notification;
  /** Base URL of links, without a slash at the end. */
  publicUrl: string;
  /** Time of the attempt, in epoch ms. */
  now: number;
  /** Whether an operator chose the target, so that private addresses are allowed. */
  mayBePrivate: boolean;
}

export interface ChannelTools {
  client: Pick<OutgoingClient, 'send'>;
  timeoutMs: number;
}

export interface SendResult {
  ok: boolean;
  /** HTTP or SMTP status. */
  status: number | null;
  error: string | null;
  /** Whether another attempt cannot succeed. */
  isFinal?: boolean;
}

export const SENT = (status: number | null): SendResult => ({ ok: true, status, error: null });

/** Sends a POST request, and reports a reply outside 2xx as a failure with the start of its body. */
export async function post(
  { client, timeoutMs }: ChannelTools,
  {
    url,
    body,
    headers = [],
    mayBePrivate,
  }: { url: string; body: string; headers?: readonly string[]; mayBePrivate: boolean },
): Promise<SendResult & { excerpt: string }> {
  const all = ['content-type', 'application/json', 'user-agent', 'svc-platform', ...headers];
  const reply = await client.send({
    ...{ url, method: 'POST', headers: all, body: Buffer.from(body) },
    ...{ timeoutMs, mayBePrivate },
  });
  const { status, excerpt } = reply;
  if (status >= 200 && status < 300) return { ...SENT(status), excerpt };
  const said = excerpt.trim() === '' ? '' : `: ${excerpt.trim()}`;
  return { ok: false, status, error: `The receiver answered ${status}${said}`, excerpt };
}
