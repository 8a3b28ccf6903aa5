import type { WebhookRequest } from '../../../../../contracts/index.ts';
import type { VerificationKeys } from '../verify/verification-key.ts';

/** HTTP/2 pseudo-header names, used to store the request line. */
const METHOD = ':method';
const PATH = ':path';
const MASK = '[masked]';

/** Truncation limits: unauthenticated clients choose the values, and each refusal is recorded. */
const MAX_UNAUTHENTICATED_VALUE_BYTES = 256;
const MAX_UNAUTHENTICATED_BYTES = 2048;

/** Headers of an unauthenticated request that are stored unmasked; any other may hold a misplaced secret. */
const SHOWN_HEADERS = new Set([
  'accept',
  'host',
  'content-type',
  'content-length',
  'user-agent',
  'x-request-id',
  'x-trace-id',
  'traceparent',
  'x-svc-namespace',
  'x-github-event',
  'x-github-delivery',
  'x-github-hook-id',
  'x-shopify-topic',
  'webhook-id',
  'webhook-timestamp',
]);

/** Headers that authenticate the sender or identify its session. */
const AUTHENTICATION_HEADER =
  /^(?:set-cookie|cookie2?|x-svc-service-key|.*(?:authorization|secret|passw(?:or)?d|token|signature|hmac|(?:api|access|private)[-_]?key|credential).*)$/;

/**
 * Headers for the record of an unauthenticated request, as JSON pairs: at most 2 KB, truncated, masked unless
 * harmless.
 */
export function maskedHeaders(rawHeaders: readonly string[]): string {
  const pairs: Array<[string, string]> = [];
  let left = MAX_UNAUTHENTICATED_BYTES;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    // Header text has one byte per character.
    const shown = SHOWN_HEADERS.has(name)
      ? rawHeaders[i + 1]!.slice(0, MAX_UNAUTHENTICATED_VALUE_BYTES)
      : MASK;
    const pair: [string, string] = [name.slice(0, MAX_UNAUTHENTICATED_VALUE_BYTES), shown];
    left -= pair[0].length + shown.length;
    if (left < 0) break;
    pairs.push(pair);
  }
  return JSON.stringify(pairs);
}

/**
 * Headers for the record of an authentic delivery as JSON pairs, read by its handler, replays and `listen`:
 * all headers, those that authenticate the sender masked. `authHeader` is the declared one.
 */
export function authenticHeaders(
  { rawHeaders, url }: { rawHeaders: readonly string[]; url: string },
  authHeader: string | undefined,
  keys: VerificationKeys | undefined,
): string {
  const declared = authHeader?.toLowerCase();
  const secrets = [keys?.current.text, keys?.previous?.text].filter((text) => text !== undefined);
  const pairs: Array<[string, string]> = [
    [METHOD, 'POST'],
    [PATH, url],
  ];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const value = rawHeaders[i + 1]!;
    // A plugin's validator may read the secret from any header.
    const isSecret =
      name === declared ||
      AUTHENTICATION_HEADER.test(name) ||
      secrets.some((secret) => value.includes(secret));
    pairs.push([name, isSecret ? MASK : value]);
  }
  return JSON.stringify(pairs);
}

/** Headers of a record for operators, without the request line. */
export function shownHeaders(recorded: string): Array<[string, string]> {
  return (JSON.parse(recorded) as Array<[string, string]>).filter(([name]) => !name.startsWith(':'));
}

/** The request for a handler, read from the delivery's record, since it may run after a restart. */
export function requestOf(recorded: string): WebhookRequest {
  const pairs = JSON.parse(recorded) as Array<[string, string]>;
  const firstOf = (wanted: string) => pairs.find(([name]) => name === wanted)?.[1] ?? '';
  const sent = pairs.filter(([name, value]) => !name.startsWith(':') && value !== MASK);
  return { method: firstOf(METHOD) || 'POST', ...targetOf(firstOf(PATH)), headers: joined(sent) };
}

/** The complete request, for a validator. */
export function wholeRequestOf(rawHeaders: readonly string[], url: string): WebhookRequest {
  const pairs: Array<[string, string]> = [];
  for (let i = 0; i < rawHeaders.length; i += 2)
    pairs.push([rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!]);
  return { method: 'POST', ...targetOf(url), headers: joined(pairs) };
}

function targetOf(url: string): Pick<WebhookRequest, 'path' | 'query'> {
  const mark = url.indexOf('?');
  if (mark === -1) return { path: url, query: {} };
  const query: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(url.slice(mark + 1))) {
    const before = query[name];
    query[name] = before === undefined ? value : [before, value].flat();
  }
  return { path: url.slice(0, mark), query };
}

/** Joins the values of repeated headers, as HTTP allows. */
function joined(pairs: ReadonlyArray<readonly [string, string]>): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of pairs) {
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(headers);
}
