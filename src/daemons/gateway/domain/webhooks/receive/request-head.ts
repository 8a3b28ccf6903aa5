import type { WebhookRequest } from '../../../../../contracts/index.ts';
import { MASKED_VALUE } from '../../../../../kit/data/recorded-headers.ts';
import type { ProofPlaces } from '../../../../../webhooks/schemes/index.ts';
import { withoutSessionCookies } from '../../identity/session-cookie.ts';
import type { VerificationKeys } from '../verify/verification-key.ts';

/** Names of the pseudo-headers that store the request line among the headers, as in HTTP/2. */
const METHOD = ':method';
const PATH = ':path';

/**
 * Maximum stored header bytes of an unauthenticated request, per name or value and in total. The limits bound the
 * storage that unauthenticated clients can use.
 */
const MAX_UNAUTHENTICATED_VALUE_BYTES = 256;
const MAX_UNAUTHENTICATED_BYTES = 2048;

/**
 * Headers whose values are stored for unauthenticated requests. The values of all other headers are masked, because
 * these values might contain a secret.
 */
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

/** Matches the names of headers that authenticate the sender or identify its session. */
const AUTHENTICATION_HEADER =
  /^(?:set-cookie|cookie2?|x-svc-service-key|.*(?:authorization|secret|passw(?:or)?d|token|signature|hmac|(?:api|access|private)[-_]?key|credential).*)$/;

/**
 * Returns the headers to store in the record of an unauthenticated request, as a JSON array of name-value pairs. Stores
 * at most 2 KB in total. Masks all values except those of harmless headers.
 */
export function maskedHeaders(rawHeaders: readonly string[]): string {
  const pairs: Array<[string, string]> = [];
  let left = MAX_UNAUTHENTICATED_BYTES;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    // Node decodes headers as Latin-1, so one character is one byte.
    const shown = SHOWN_HEADERS.has(name)
      ? rawHeaders[i + 1]!.slice(0, MAX_UNAUTHENTICATED_VALUE_BYTES)
      : MASKED_VALUE;
    const pair: [string, string] = [name.slice(0, MAX_UNAUTHENTICATED_VALUE_BYTES), shown];
    left -= pair[0].length + shown.length;
    if (left < 0) break;
    pairs.push(pair);
  }
  return JSON.stringify(pairs);
}

/**
 * Returns all headers of an authentic delivery as JSON pairs. Masks headers and query parameters that authenticate the
 * sender, including the `declared` ones. Handlers, replays and `svc webhooks listen` use the result.
 */
export function authenticHeaders(
  { rawHeaders, url, method }: { rawHeaders: readonly string[]; url: string; method: string },
  declared: ProofPlaces | undefined,
  keys: VerificationKeys | undefined,
): string {
  const secrets = [keys?.current.text, keys?.previous?.text].filter((text) => text !== undefined);
  const pairs: Array<[string, string]> = [
    [METHOD, method],
    [PATH, maskedTarget(url, declared?.queries ?? NO_NAMES, secrets)],
  ];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const value = rawHeaders[i + 1]!;
    // A plugin's own validator can accept a secret in any header.
    const isSecret =
      declared?.headers.has(name) ||
      AUTHENTICATION_HEADER.test(name) ||
      secrets.some((secret) => value.includes(secret));
    pairs.push([name, isSecret ? MASKED_VALUE : value]);
  }
  return JSON.stringify(pairs);
}

const NO_NAMES: ReadonlySet<string> = new Set();

/** Masks the query parameters that have a declared name or contain a secret. */
function maskedTarget(url: string, names: ReadonlySet<string>, secrets: readonly string[]): string {
  const mark = url.indexOf('?');
  if (mark === -1) return url;
  const pairs = url
    .slice(mark + 1)
    .split('&')
    .map((pair) => {
      const [[name, value] = ['', '']] = new URLSearchParams(pair);
      const isSecret = names.has(name) || secrets.some((secret) => value.includes(secret));
      return isSecret ? `${encodeURIComponent(name)}=${encodeURIComponent(MASKED_VALUE)}` : pair;
    });
  return `${url.slice(0, mark)}?${pairs.join('&')}`;
}

/** Returns the recorded headers for operators, without the pseudo-headers of the request line. */
export function shownHeaders(recorded: string): Array<[string, string]> {
  return (JSON.parse(recorded) as Array<[string, string]>).filter(([name]) => !name.startsWith(':'));
}

/** Returns the recorded headers that are not masked, in the flat array format of Node's `rawHeaders`. */
export function sentHeaders(recorded: string): string[] {
  return shownHeaders(recorded)
    .filter(([, value]) => value !== MASKED_VALUE)
    .flat();
}

/** Builds the request for a handler from the record, because the handler might run after a restart. */
export function requestOf(recorded: string): WebhookRequest {
  const pairs = JSON.parse(recorded) as Array<[string, string]>;
  const firstOf = (wanted: string) => pairs.find(([name]) => name === wanted)?.[1] ?? '';
  const sent = pairs.filter(([name, value]) => !name.startsWith(':') && value !== MASKED_VALUE);
  return { method: firstOf(METHOD) || 'POST', ...targetOf(firstOf(PATH)), headers: joined(sent) };
}

/**
 * Returns the complete request for a plugin's validator, with no header masked. Plugins get no session of the studio.
 */
export function wholeRequestOf(rawHeaders: readonly string[], url: string): WebhookRequest {
  const pairs: Array<[string, string]> = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const value = rawHeaders[i + 1]!;
    pairs.push([name, name === 'cookie' ? withoutSessionCookies(value) : value]);
  }
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

/** Joins the values of each repeated header with a comma, as HTTP allows. */
function joined(pairs: ReadonlyArray<readonly [string, string]>): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of pairs) {
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(headers);
}
