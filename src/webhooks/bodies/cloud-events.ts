import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../contracts/index.ts';
import { nestsDeeperThan } from '../../kit/data/json.ts';
import type { ContentType } from './content-type.ts';
import { parseJson } from './json.ts';
import { type ParsedBody, payloadFrom } from './parsed-body.ts';

/** Media type of an event in structured mode. A webhook that accepts this type also accepts events in binary mode. */
export const CLOUD_EVENT_TYPE = 'application/cloudevents+json';

const PREFIX = 'ce-';
/** Names of attributes, which consist of lower-case letters and digits. */
const ATTRIBUTE = /^[a-z0-9]{1,64}$/;

/** Returns whether a request contains an event in binary mode, with its attributes in `ce-` headers. */
export function isBinaryEvent(
  headers: Readonly<Record<string, string>>,
  sent: ContentType | undefined,
): boolean {
  return headers['ce-specversion'] !== undefined && !sent?.type.startsWith('application/cloudevents');
}

/**
 * Parses an event in binary mode to the form of structured mode. `data` is parsed if it is JSON and a string if it is
 * text; `data_base64` has other bytes.
 */
export function parseBinaryEvent(
  body: Buffer,
  headers: Readonly<Record<string, string>>,
  sent: ContentType | undefined,
): ParsedBody {
  const event: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    const attribute = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : '';
    if (!ATTRIBUTE.test(attribute) || attribute === 'data') continue;
    const text = percentDecoded(value);
    if (text === undefined) return { fault: `the header ${name} is not valid percent-encoded UTF-8` };
    event[attribute] = text;
  }
  if (headers['content-type'] !== undefined) event.datacontenttype = headers['content-type'];
  if (body.length === 0) return payloadFrom(event);
  if (!sent || isJson(sent.type)) {
    const data = parseJson(body);
    if (data.fault !== undefined) return { fault: `its data is not valid JSON: ${data.fault}` };
    // `data` adds one level.
    if (nestsDeeperThan(data.text, LIMITS.jsonDepth - 1))
      return { fault: `it nests deeper than ${LIMITS.jsonDepth} levels` };
    event.data = data.value;
  } else if (sent.type.startsWith('text/') && isUtf8(body)) event.data = body.toString('utf8');
  else event.data_base64 = body.toString('base64');
  return payloadFrom(event);
}

function isJson(type: string): boolean {
  return type === 'application/json' || type === 'text/json' || type.endsWith('+json');
}

function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
