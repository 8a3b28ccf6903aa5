import { z } from 'zod';

/** Content of a response that is not the platform's JSON. */
export interface ReplyContent {
  /** Value of the `content-type` header. Undefined for a response without a body. */
  type: string | undefined;
  data: string | Buffer;
}

export interface HandlerReply {
  status: number;
  headers: Record<string, string>;
  content: ReplyContent;
}

const MAX_HEADERS = 32;
const MAX_HEADER_CHARS = 2048;
const MAX_BODY_BYTES = 1024 * 1024;
/** Characters that Node accepts in the value of a header. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Headers that a handler must not set. They belong to the connection, to the gateway, or to the origin that the
 * gateway's other pages share.
 */
const FORBIDDEN =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|set-cookie2?|clear-site-data|strict-transport-security|public-key-pins.*|content-security-policy.*|x-content-type-options|access-control-.*|service-worker-allowed|nel|report-to|reporting-endpoints|accept-ch|critical-ch|origin-agent-cluster|alt-svc|server|date|host|x-request-id|x-webhook-id|x-trace-id|x-svc-.*|:.*)$/i;

/** Statuses that refer to another URL, or to the URL of a created resource. */
const HAS_LOCATION = (status: number): boolean => status === 201 || (status >= 300 && status < 400);
const HAS_NO_BODY = (status: number): boolean => status === 204 || status === 304;

const Reply = z.strictObject({
  status: z.number().int().min(200).max(599).default(200),
  headers: z.record(z.string(), z.string()).default({}),
  /** A text, or any other JSON value, which is sent as JSON. */
  body: z.unknown().optional(),
  /** Encoding of a text body. `base64` is decoded. */
  encoding: z.enum(['text', 'base64']).default('text'),
});

/**
 * Returns the response that a handler with `reply: "handler"` returned, or a message that says what is wrong with it.
 * @spec docs/webhooks.md "Answers"
 */
export function handlerReplyOf(result: unknown): HandlerReply | { fault: string } {
  const read = Reply.safeParse(result);
  if (!read.success) {
    const [issue] = read.error.issues;
    const path = issue?.path.join('.');
    return { fault: `${path ? `${path}: ` : ''}${issue?.message ?? 'invalid'}` };
  }
  const { status, body, encoding } = read.data;
  const headers = lowerCased(read.data.headers);
  const fault = headerFault(headers, status);
  if (fault) return { fault };
  const { 'content-type': given, ...others } = headers;
  const content = contentOf(body, encoding, given);
  if (typeof content === 'string') return { fault: content };
  if (Buffer.byteLength(content.data) > MAX_BODY_BYTES)
    return { fault: `body: has more than ${MAX_BODY_BYTES} bytes` };
  if (HAS_NO_BODY(status) && content.data.length > 0)
    return { fault: `body: a response with status ${status} has no body` };
  return { status, headers: others, content };
}

function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function headerFault(headers: Record<string, string>, status: number): string | undefined {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) return `headers: has more than ${MAX_HEADERS} headers`;
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, 64));
    if (!HEADER_NAME.test(name)) return `headers: ${shown} is not the name of a header`;
    if (FORBIDDEN.test(name)) return `headers: a handler cannot set ${shown}`;
    if (value.length > MAX_HEADER_CHARS || !HEADER_VALUE.test(value))
      return `headers: the value of ${shown} is too long or has characters that a header cannot contain`;
    if (name === 'location' && !HAS_LOCATION(status))
      return 'headers: "location" needs the status 201 or a redirect';
  }
  return undefined;
}

/** Returns the content, or a message for invalid base64. */
function contentOf(
  body: unknown,
  encoding: 'text' | 'base64',
  type: string | undefined,
): ReplyContent | string {
  if (body === undefined || body === null) return { type, data: '' };
  if (typeof body !== 'string')
    return { type: type ?? 'application/json; charset=utf-8', data: JSON.stringify(body) };
  if (encoding === 'text') return { type: type ?? 'text/plain; charset=utf-8', data: body };
  const data = Buffer.from(body, 'base64');
  if (data.toString('base64') !== body) return 'body: is not base64';
  return { type: type ?? 'application/octet-stream', data };
}
