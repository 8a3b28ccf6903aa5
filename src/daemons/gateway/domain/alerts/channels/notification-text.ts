import type { ListedAlert, Notification } from '../notification.ts';

const WORDS = { firing: 'Firing', repeat: 'Still firing', resolved: 'Resolved' } as const;
const MAX_TITLE_CHARS = 180;

/** Removes control and formatting characters, so that a name cannot add lines, headers or reversed text. */
export function plain(text: string, maxChars: number): string {
  const clean = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  const characters = [...clean];
  return characters.length > maxChars ? `${characters.slice(0, maxChars - 1).join('')}…` : clean;
}

/** Returns a title of one line, such as `Firing: A run of ship failed (and 2 more)`. */
export function titleOf({ reason, alerts, total, uncounted, rule, isTest }: Notification): string {
  if (isTest) return `Test: the rule or channel "${plain(rule, MAX_TITLE_CHARS)}" works`;
  const others = total - 1 + uncounted;
  const more = others > 0 ? ` (and ${others} more)` : '';
  return `${WORDS[reason]}: ${plain(alerts[0]?.title ?? rule, MAX_TITLE_CHARS)}${more}`;
}

/** Returns how many alerts are not listed, as a sentence, or undefined. */
export function restOf({ total, uncounted, alerts }: Notification): string | undefined {
  const rest = total - alerts.length + uncounted;
  return rest > 0 ? `${rest} more ${rest === 1 ? 'alert is' : 'alerts are'} not listed.` : undefined;
}

export function stillFiring({ reason, firing }: Notification): string | undefined {
  if (reason !== 'resolved' || firing === 0) return undefined;
  return `${firing} ${firing === 1 ? 'alert of this group still fires' : 'alerts of this group still fire'}.`;
}

export function countText({ count }: ListedAlert): string {
  return count > 1 ? ` (${count} times)` : '';
}

/** Returns the URL of the object, or of the alert. */
export function linkOf(publicUrl: string, { path, id }: Pick<ListedAlert, 'path' | 'id'>): string {
  return `${publicUrl}${path ?? `/studio/alerts/${encodeURIComponent(id)}`}`;
}

export function footer({ rule, kind, severity }: Notification): string {
  return `Rule ${plain(rule, 64)} · ${kind} · ${severity}`;
}
