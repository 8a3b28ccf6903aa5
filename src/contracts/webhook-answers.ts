import { z } from 'zod';
import { BodyFormat, MediaType } from './body-format.ts';
import { Handshake } from './webhook-handshake.ts';

/** Response to an accepted delivery, for senders that require a certain one. */
export const AcceptedReply = z.strictObject({
  status: z.number().int().min(200).max(299).default(200),
  contentType: z
    .string()
    .max(128)
    .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')
    .optional(),
  body: z
    .string()
    .max(16 * 1024)
    .default(''),
});
export type AcceptedReply = z.infer<typeof AcceptedReply>;

/**
 * Response of a handler with `reply: "handler"`. A `body` that is no string is sent as JSON. A string is sent as text, or
 * decoded first with `encoding: "base64"`.
 */
export interface WebhookReply {
  /** 200 by default. */
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
  encoding?: 'text' | 'base64';
}

/** A file of a `multipart/form-data` body, in the payload of its delivery. */
export interface WebhookFile {
  filename: string;
  contentType: string;
  bytes: number;
  /** Key for `ctx.storage.read`. */
  key: string;
}

/** Fields of a webhook's declaration that extend the spec for senders of other formats. docs/webhooks.md "Bodies" */
export const ReceiveOptions = {
  /** Format of the body. Default: that of the provider's entry in the catalogue, or `json`. */
  body: BodyFormat.optional(),
  /** Accepted media types. Checked only if `body` or this list is declared, or if the provider's entry has a list. */
  contentTypes: z.array(MediaType).min(1).max(16).optional(),
  /** Field of a form whose value is JSON, such as `payload` of Slack. */
  jsonField: z.string().min(1).max(256).optional(),
  /** `handler`: the `{status, headers, body}` that the handler of a sync webhook returns is the response. */
  reply: z.enum(['platform', 'handler']).optional(),
  /** Time after which a sync delivery is answered as accepted, while its handler continues. */
  ackAfterMs: z.number().int().min(100).max(60_000).optional(),
  /** Response to accepted deliveries, for senders that require a certain one. */
  accepted: AcceptedReply.optional(),
  /** Requests that verify the URL, such as a GET with a challenge. Default: those of the provider's entry. */
  handshakes: z.array(Handshake).max(8).optional(),
};
