import { isUtf8 } from 'node:buffer';
import type { BodyFormat } from '../../contracts/index.ts';
import { type MaybePromise, onceKnown } from '../../kit/data/maybe-promise.ts';
import { isBinaryEvent, parseBinaryEvent } from './cloud-events.ts';
import { type ContentType, contentTypeOf } from './content-type.ts';
import { parseForm } from './form.ts';
import { parseJson } from './json.ts';
import { type FileKey, parseMultipart } from './multipart.ts';
import { type ParsedBody, payloadFrom } from './parsed-body.ts';
import { parseXml } from './xml.ts';

/** Format of a webhook's bodies, from its declaration and its provider's entry. */
export interface BodyRules {
  format: BodyFormat;
  jsonField?: string | undefined;
  /** Whether `ce-` headers make the body the data of a CloudEvent. */
  takesCloudEvents?: boolean;
}

export interface BodyParts {
  body: Buffer;
  /** Headers with lower-case names. Only `content-type` and `ce-…` are read. */
  headers: Readonly<Record<string, string>>;
  fileKey: FileKey;
}

/** How messages name a format. */
export const FORMAT_NAMES: Readonly<Record<BodyFormat, string>> = {
  json: 'JSON',
  form: 'a form',
  multipart: 'multipart/form-data',
  xml: 'XML',
  text: 'text',
  raw: 'a body',
};

const FORM_TYPES: Readonly<Record<string, BodyFormat>> = {
  'application/x-www-form-urlencoded': 'form',
  'multipart/form-data': 'multipart',
};

/**
 * Parses a body. The result is a promise only for `multipart/form-data`. A webhook that receives forms in both
 * encodings gets each by its content type.
 */
export function parseBody(rules: BodyRules, { body, headers, fileKey }: BodyParts): MaybePromise<ParsedBody> {
  const sent = contentTypeOf(headers['content-type']);
  if (rules.takesCloudEvents && isBinaryEvent(headers, sent)) return parseBinaryEvent(body, headers, sent);
  switch (formatOf(rules, sent)) {
    case 'json':
      return parseJson(body);
    case 'form':
      return parseForm(body, rules.jsonField);
    case 'multipart':
      return parseMultipart(body, sent?.boundary, { jsonField: rules.jsonField, fileKey });
    case 'xml':
      return parseXml(body);
    case 'text':
      return isUtf8(body) ? payloadFrom(body.toString('utf8')) : { fault: 'it is not UTF-8' };
    case 'raw':
      return payloadFrom(body.toString('base64'));
  }
}

/** Returns the format of this body. */
export function formatOf({ format }: BodyRules, sent: ContentType | undefined): BodyFormat {
  if (format !== 'form' && format !== 'multipart') return format;
  return FORM_TYPES[sent?.type ?? ''] ?? format;
}

/** Parses a body once, on the first call of the returned function. */
export function parseOnce(rules: BodyRules, parts: BodyParts): () => MaybePromise<ParsedBody> {
  let parsed: MaybePromise<ParsedBody> | undefined;
  return () => {
    parsed ??= onceKnown(parseBody(rules, parts), (known) => (parsed = known));
    return parsed;
  };
}
