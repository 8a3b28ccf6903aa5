import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { ErrorClass } from '../../../../../contracts/index.ts';
import { NO_TENANT, redactJson } from '../../../../../kit/telemetry/redact.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import { StepFailure } from '../retry-policy.ts';
import type { StepCall, StepKind } from '../step-kind.ts';

export interface HttpRequest {
  url: string;
  method: string;
  headers: Array<[string, string]>;
  /** Request body in base64. */
  body: string | null;
  redirect: 'follow' | 'manual';
}

export interface HttpReply {
  url: string;
  status: number;
  headers: Array<[string, string]>;
  /** Response body in base64. */
  body: string;
}

/**
 * Sends a request with the same network restrictions as `fetch` in plugins. Loopback, link-local and private addresses
 * are blocked unless explicitly allowed.
 */
export type HttpCall = (
  request: HttpRequest,
  options: { tenantId: string; signal: AbortSignal },
) => Promise<HttpReply>;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** Methods that HTTP defines as idempotent. */
const SAFE_TO_REPEAT = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']);
const KEYS = ['method', 'url', 'headers', 'body', 'redirect', 'expect'];
const EXCERPT_CHARS = 2048;
/**
 * Response headers that contain credentials. These headers are dropped, because step outputs are stored and visible to
 * every reader of the run.
 */
const CREDENTIAL_HEADERS = new Set([
  ...['set-cookie', 'set-cookie2', 'cookie', 'authorization', 'proxy-authorization'],
  ...['authentication-info', 'proxy-authentication-info'],
]);

/**
 * Calls a URL and outputs `{status, url, headers, body}`. A status of 400 or above is a failure unless `expect` lists
 * the status.
 */
export function httpStep(call: HttpCall, now: () => number): StepKind {
  return {
    name: 'http',
    mode: 'effect',
    takesSlot: true,
    takesSecrets: true,
    defaultTimeoutMs: seconds(30),
    check: (input) => [
      ...Object.keys(input)
        .filter((key) => !KEYS.includes(key))
        .map((key) => ({ path: [key], message: `is unknown; the known fields are ${KEYS.join(', ')}` })),
      ...('url' in input ? [] : [{ path: ['url'], message: 'is required' }]),
      ...(isLiteral(input.method) && !METHODS.includes(String(input.method).toUpperCase())
        ? [{ path: ['method'], message: `must be one of ${METHODS.join(', ')}` }]
        : []),
    ],
    isIdempotent: (_, { method }) =>
      method === undefined || (isLiteral(method) && SAFE_TO_REPEAT.has(String(method).toUpperCase())),
    async run(step) {
      const request = requestOf(step);
      step.log('debug', `${request.method} ${shownUrl(request.url)}`);
      const reply = await call(request, { tenantId: step.run.tenantId, signal: step.signal });
      const output = outputOf(reply);
      const expected = Array.isArray(step.input.expect) ? step.input.expect : [];
      if (reply.status < 400 || expected.includes(reply.status)) return { output };
      throw failureOf(request, reply, output, now());
    },
  };
}

function isLiteral(value: JsonValue | undefined): boolean {
  return typeof value === 'string' && !value.includes('{{');
}

/** Returns the URL without query, fragment and credentials, for logs and messages. */
function shownUrl(url: string): string {
  return url.replace(/[?#].*$/s, '').replace(/^([\w+.-]+:\/\/)[^/]*@/, '$1');
}

function invalid(message: string): StepFailure {
  return new StepFailure('validation', { code: 'VALIDATION_ERROR', message, details: {} });
}

function requestOf({ input, idempotencyKey }: StepCall): HttpRequest {
  const { url, method = 'GET', headers = {}, body = null, redirect = 'follow' } = input;
  if (typeof url !== 'string' || !URL.canParse(url))
    throw invalid(`"url" must be an absolute URL, not ${JSON.stringify(url)}.`);
  const verb = String(method).toUpperCase();
  if (!METHODS.includes(verb))
    throw invalid(`"method" must be one of ${METHODS.join(', ')}, not ${JSON.stringify(method)}.`);
  if (body !== null && (verb === 'GET' || verb === 'HEAD'))
    throw invalid(`"body" must be left out: ${verb} has none.`);
  if (redirect !== 'follow' && redirect !== 'manual')
    throw invalid(`"redirect" must be one of follow, manual, not ${JSON.stringify(redirect)}.`);
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers))
    throw invalid('"headers" must be an object.');
  const sent = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
  if (body !== null && typeof body !== 'string' && !sent.has('content-type'))
    sent.set('content-type', 'application/json');
  if (idempotencyKey !== null && !sent.has('idempotency-key')) sent.set('idempotency-key', idempotencyKey);
  for (const [name, value] of sent) requireHeader(name, value);
  const text = body === null || typeof body === 'string' ? body : JSON.stringify(body);
  return {
    url,
    method: verb,
    headers: [...sent],
    body: text === null ? null : Buffer.from(text).toString('base64'),
    redirect,
  };
}

/**
 * Throws a validation error for an invalid header. Otherwise, the header would count as a network error and cause
 * retries.
 */
function requireHeader(name: string, value: string): void {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw invalid(
      `The header ${JSON.stringify(name)} cannot be sent: HTTP has no such name, or no such value.`,
    );
  }
}

function outputOf({ status, headers, body, url }: HttpReply): { [name: string]: JsonValue } {
  const named = Object.fromEntries(headers.filter(([name]) => !CREDENTIAL_HEADERS.has(name.toLowerCase())));
  const text = Buffer.from(body, 'base64').toString('utf8');
  const isJson = /^application\/(?:[\w.+-]+\+)?json\b/i.test(named['content-type'] ?? '');
  return { status, url, headers: named, body: isJson ? parsed(text) : text };
}

function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function classOf(status: number): ErrorClass {
  if (status === 408 || status === 504) return 'timeout';
  if (status === 429) return 'rate_limit';
  if (status === 401 || status === 403 || status === 407) return 'auth';
  if (status === 404 || status === 410) return 'not_found';
  return status >= 500 ? 'server' : 'validation';
}

function failureOf(
  request: HttpRequest,
  reply: HttpReply,
  output: { [name: string]: JsonValue },
  now: number,
): StepFailure {
  const { body: said = null } = output;
  // The parsed object is redacted instead of the text, because redaction matches key names.
  const body =
    typeof said === 'object' && said !== null ? JSON.stringify(redactJson(said, NO_TENANT)) : String(said);
  return new StepFailure(
    classOf(reply.status),
    {
      code: 'STEP_FAILED',
      message: `${request.method} ${shownUrl(request.url)} answered ${reply.status}.`,
      details: { status: reply.status, body: body.slice(0, EXCERPT_CHARS) },
    },
    retryAfterOf(new Map(reply.headers).get('retry-after'), now),
  );
}

/** Converts a `Retry-After` header (seconds or a date) to ms. Returns null if the header is missing or invalid. */
function retryAfterOf(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  const time = Date.parse(header);
  return Number.isNaN(time) ? null : Math.max(0, time - now);
}
