import { z } from 'zod';
import { RequestPlace } from './webhook-auth.ts';

const Name = z.string().min(1).max(256);
const HeaderName = z
  .string()
  .max(256)
  .regex(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/, 'must be the name of a header');
const HeaderValue = z
  .string()
  .max(2048)
  .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII');

/** A condition on a request: a place with a value. Without `equals`, the place must have some value. */
const Condition = z.strictObject({
  at: RequestPlace,
  equals: z.union([z.string(), z.number(), z.boolean()]).optional(),
});

/**
 * Value of a reply. A text is copied; `{from}` is read from the request; `{hmac}` is the HMAC-SHA256 of that value, with
 * the webhook's secret as its key.
 */
const ReplyValue = z.union([
  z.string(),
  z.number(),
  z.strictObject({ from: RequestPlace }),
  z.strictObject({
    hmac: z.strictObject({
      of: RequestPlace,
      encoding: z.enum(['hex', 'base64']),
      prefix: z.string().max(64).default(''),
    }),
  }),
]);
export type ReplyValue = z.infer<typeof ReplyValue>;

/** A request that verifies the URL of a webhook or changes its state, and is not a delivery. */
export const Handshake = z.strictObject({
  method: z.enum(['GET', 'HEAD', 'OPTIONS', 'POST']),
  /** All conditions must hold. Without conditions, each request with this method is a handshake. */
  when: z.array(Condition).max(8).default([]),
  /** Whether the sender must prove itself as for a delivery before the reply is sent. */
  isAuthenticated: z.boolean().default(false),
  /** Place whose value must be the webhook's secret, such as Meta's `hub.verify_token`. */
  verifyToken: RequestPlace.optional(),
  /**
   * An effect beside the reply. `take-secret` stores a secret that the sender hands over; it is accepted once, while the
   * operator's window is open. `confirm-subscription` fetches the confirmation URL of AWS SNS.
   */
  effect: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('take-secret'), at: RequestPlace }),
      z.strictObject({ type: z.literal('confirm-subscription') }),
    ])
    .optional(),
  reply: z.strictObject({
    status: z.number().int().min(200).max(299).default(200),
    headers: z.record(HeaderName, z.union([HeaderValue, z.strictObject({ from: RequestPlace })])).default({}),
    /** Body as text, which is sent as `text/plain`. */
    text: ReplyValue.optional(),
    /** Body as a JSON object. */
    json: z.record(Name, ReplyValue).optional(),
  }),
});
export type Handshake = z.infer<typeof Handshake>;
