import { ALL_NAMESPACES, type AlertMatch, type SilenceMatcher } from '../../../../contracts/index.ts';
import type { Rule, Silence } from './rule-book.ts';

/** The parts of an alert or occurrence that rules and silences match. */
export interface Matched {
  kind: string;
  object: { id: string; namespaceId: string | null; labels: Readonly<Record<string, string>> };
}

/** Returns whether a rule applies. Rules of a namespace see only objects of this namespace. */
export function appliesTo({ namespaceId, settings }: Rule, { kind, object }: Matched): boolean {
  if (!settings.enabled || settings.kind !== kind) return false;
  if (namespaceId !== ALL_NAMESPACES && namespaceId !== object.namespaceId) return false;
  return matches(settings.match, object.labels);
}

export function matches(match: AlertMatch, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(match).every(
    ([field, pattern]) => pattern === undefined || matchesPattern(pattern, labels[field] ?? ''),
  );
}

/** Compares a text with a pattern whose `*` stands for any characters */
export function matchesPattern(pattern: string, text: string): boolean {
  const parts = pattern.split('*');
  if (parts.length === 1) return pattern === text;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return false;
  let from = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}

export interface Silenceable extends Matched {
  namespaceId: string;
  rule: string;
}

/** Returns the silence that keeps an alert from being sent, or undefined. */
export function silenceOf(
  silences: readonly Silence[],
  alert: Silenceable,
  now: number,
): Silence | undefined {
  return silences.find(
    ({ namespaceId, matcher, until }) =>
      namespaceId === alert.namespaceId && until > now && covers(matcher, alert),
  );
}

function covers({ kind, rule, object }: SilenceMatcher, alert: Silenceable): boolean {
  return (
    (kind === undefined || kind === alert.kind) &&
    (rule === undefined || rule === alert.rule) &&
    (object === undefined || matchesPattern(object, alert.object.id))
  );
}

/** Returns the key of the group that an alert of the rule belongs to. */
export function groupKeyOf({ namespaceId, name, settings }: Rule, { object }: Matched): string {
  const values = settings.groupBy.map((field) =>
    field === 'object' ? object.id : (object.labels[field] ?? ''),
  );
  return JSON.stringify([namespaceId, name, ...values]);
}
