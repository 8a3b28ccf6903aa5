import { MIMEType } from 'node:util';
import type { BodyFormat } from '../../contracts/index.ts';

/** A parsed `Content-Type` header. */
export interface ContentType {
  /** Media type in lower case, without parameters. */
  type: string;
  charset: string | undefined;
  boundary: string | undefined;
}

/** Media types accepted for a format, unless the webhook or its provider lists others. */
export const DEFAULT_TYPES: Readonly<Record<BodyFormat, readonly string[]>> = {
  json: ['application/json', 'application/*+json'],
  form: ['application/x-www-form-urlencoded'],
  multipart: ['multipart/form-data'],
  xml: ['application/xml', 'text/xml', 'application/*+xml'],
  text: ['text/*'],
  raw: ['*/*'],
};

/** Charsets of text that is decoded as UTF-8. */
const UTF8 = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

/** Returns the parsed header, or undefined if it is missing or malformed. */
export function contentTypeOf(header: string | undefined): ContentType | undefined {
  if (header === undefined) return undefined;
  try {
    const { essence, params } = new MIMEType(header);
    return {
      type: essence,
      charset: params.get('charset')?.toLowerCase(),
      boundary: params.get('boundary') ?? undefined,
    };
  } catch {
    return undefined;
  }
}

/**
 * Returns why a body of this content type is not accepted, or undefined if it is. `*` in an accepted type stands for
 * any text, as in `text/*`.
 */
export function contentTypeFault(
  sent: ContentType | undefined,
  accepted: readonly string[],
  format: BodyFormat,
): string | undefined {
  if (accepted.includes('*/*')) return undefined;
  const list = accepted.join(', ');
  if (!sent) return `Send a Content-Type header with one of: ${list}.`;
  if (!accepted.some((type) => matches(sent.type, type)))
    return `This webhook does not accept ${sent.type.slice(0, 128)}. Send one of: ${list}.`;
  if (format !== 'json' && sent.charset !== undefined && !UTF8.has(sent.charset))
    return `The charset ${sent.charset.slice(0, 64)} is not supported. Send UTF-8.`;
  return undefined;
}

function matches(type: string, accepted: string): boolean {
  const [before, after] = accepted.split('*');
  if (after === undefined) return type === accepted;
  return type.length > accepted.length - 1 && type.startsWith(before!) && type.endsWith(after);
}
