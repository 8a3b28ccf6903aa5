import type { BodyFormat } from '../../../../../contracts/index.ts';
import { type MaybePromise, onceKnown } from '../../../../../kit/data/maybe-promise.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';
import { contentTypeOf } from '../../../../../webhooks/bodies/content-type.ts';
import { parseJson } from '../../../../../webhooks/bodies/json.ts';
import { type BodyParts, formatOf, parseBody } from '../../../../../webhooks/bodies/parse-body.ts';
import type { ParsedBody, ParsedPayload } from '../../../../../webhooks/bodies/parsed-body.ts';
import { type ReceiveRules, receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import { requestOf } from './request-head.ts';
import type { DeclaredWebhook } from './targets.ts';
import { uploadKey } from './upload-key.ts';

export type { ParsedBody } from '../../../../../webhooks/bodies/parsed-body.ts';

/** The payload of a delivery, as its handler gets it. */
export interface JsonPayload extends ParsedPayload {
  /** The body as received, for handlers of webhooks that declare a body format. */
  raw?: Buffer;
}

/** Returns a function that parses the body on its first call. Only multipart bodies yield a promise. */
export function parseOnce(
  rules: ReceiveRules,
  body: Buffer,
  { webhookId, incoming }: { webhookId: string; incoming: { rawHeaders: readonly string[] } },
): () => MaybePromise<ParsedBody> {
  let parsed: MaybePromise<ParsedBody> | undefined;
  return () => {
    parsed ??= onceKnown(
      isPlainJson(rules)
        ? parseJson(body)
        : parseBody(rules.body, partsOf(body, headersOf(incoming.rawHeaders), webhookId)),
      (known) => {
        parsed = known;
        return known;
      },
    );
    return parsed;
  };
}

/** Adds the bytes of the body to a payload, if handlers of the webhook get them. */
export function withBytes(rules: ReceiveRules, payload: ParsedPayload, raw: Buffer): JsonPayload {
  return rules.hasBodyRules ? { ...payload, raw } : payload;
}

/** Parses the stored body of an accepted delivery, which was validated on receipt. */
export function payloadOf(
  { webhook }: DeclaredWebhook,
  { webhookId, headers, body }: Pick<NewDelivery, 'webhookId' | 'headers' | 'body'>,
): MaybePromise<JsonPayload> {
  const rules = receiveRulesOf(webhook);
  const bytes = Buffer.from(body ?? []);
  const parsed = isPlainJson(rules)
    ? parseJson(bytes)
    : parseBody(rules.body, partsOf(bytes, requestOf(headers).headers, webhookId));
  return onceKnown(parsed, (known) =>
    known.fault === undefined ? withBytes(rules, known, bytes) : { value: undefined, text: '' },
  );
}

/** Returns the format in which the body of a request is parsed. */
export function bodyFormatOf({ body }: ReceiveRules, rawHeaders: readonly string[]): BodyFormat {
  return formatOf(body, contentTypeOf(headersOf(rawHeaders)['content-type']));
}

function isPlainJson({ body }: ReceiveRules): boolean {
  return body.format === 'json' && !body.takesCloudEvents;
}

function partsOf(body: Buffer, headers: Readonly<Record<string, string>>, webhookId: string): BodyParts {
  return { body, headers, fileKey: (index) => uploadKey(webhookId, index) };
}

/** Returns the headers by their lower-case names. Of a repeated header, the values are joined as in the record. */
function headersOf(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    headers[name] =
      headers[name] === undefined ? rawHeaders[i + 1]! : `${headers[name]}, ${rawHeaders[i + 1]}`;
  }
  return headers;
}
