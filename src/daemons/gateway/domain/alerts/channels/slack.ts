import type { AlertChannelSettings } from '../../../../../contracts/index.ts';
import type { ListedAlert } from '../notification.ts';
import { type ChannelCall, type ChannelTools, post, type SendResult } from './channel-sender.ts';
import { countText, footer, linkOf, plain, restOf, stillFiring, titleOf } from './notification-text.ts';

type Settings = Extract<AlertChannelSettings, { type: 'slack' }>;

/** Limits of Slack's Block Kit, in characters. */
const MAX_HEADER_CHARS = 150;
const MAX_LINE_CHARS = 250;
const MAX_SECTION_CHARS = 2900;
const COLORS = { info: '#36a2eb', warning: '#f2a600', critical: '#d92d20' } as const;
const RESOLVED_COLOR = '#12805c';

/** Escapes the three characters of control sequences. Names could otherwise mention channels or fake links. */
export function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Escapes text inside of mrkdwn, whose formatting characters have no escape: a zero-width space separates them. */
export function mrkdwn(text: string, maxChars: number): string {
  return escapeSlack(plain(text, maxChars)).replaceAll(/[*_~`|]/g, (character) => `\u200b${character}\u200b`);
}

export function slackMessage({
  notification,
  publicUrl,
}: Pick<ChannelCall, 'notification' | 'publicUrl'>): object {
  const title = titleOf(notification);
  const sections: string[] = [];
  let lines = '';
  for (const alert of notification.alerts) {
    const line = lineOf(alert, publicUrl);
    if (lines.length + line.length > MAX_SECTION_CHARS) break;
    lines += `${line}\n`;
  }
  if (lines !== '') sections.push(lines.trimEnd());
  const notes = [stillFiring(notification), restOf(notification)].filter((note) => note !== undefined);
  if (notes.length > 0) sections.push(notes.join(' '));
  return {
    // Shown in notifications of the operating system, and by clients without blocks.
    text: escapeSlack(title),
    attachments: [
      {
        color: notification.reason === 'resolved' ? RESOLVED_COLOR : COLORS[notification.severity],
        fallback: escapeSlack(title),
        blocks: [
          {
            type: 'header',
            text: { type: 'plain_text', text: plain(title, MAX_HEADER_CHARS), emoji: false },
          },
          ...sections.map((text) => ({ type: 'section', text: { type: 'mrkdwn', text, verbatim: true } })),
          { type: 'context', elements: [{ type: 'plain_text', text: footer(notification), emoji: false }] },
        ],
      },
    ],
  };
}

function lineOf(alert: ListedAlert, publicUrl: string): string {
  // The URL of a link ends at ">" or "|", which encodeURIComponent leaves out of paths.
  const link = escapeSlack(linkOf(publicUrl, alert)).replaceAll('|', '%7C');
  const message = mrkdwn(alert.message, MAX_LINE_CHARS);
  return `• <${link}|${mrkdwn(alert.title, MAX_LINE_CHARS)}>${countText(alert)} ${message}`;
}

/** Sends a notification to an incoming webhook of Slack, whose URL is the secret. */
export async function sendSlack(call: ChannelCall<Settings>, tools: ChannelTools): Promise<SendResult> {
  const { secret = '', mayBePrivate } = call;
  const result = await post(tools, { url: secret, body: JSON.stringify(slackMessage(call)), mayBePrivate });
  return { ok: result.ok, status: result.status, error: result.error };
}
