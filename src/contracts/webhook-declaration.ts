import { z } from 'zod';
import { HandlerRef } from './handler-ref.ts';
import { EventName } from './ids.ts';
import { LIMITS } from './limits.ts';
import { ReceiveOptions } from './webhook-answers.ts';
import { WebhookAuthConfig } from './webhook-auth.ts';
import { WebhookRetry } from './webhook-retry.ts';

const PositiveInt = z.number().int().positive();
const DotPath = z.string().min(1).max(256);

/**
 * Reply to a challenge request, by which a sender verifies the URL of the webhook. @spec Webhook declaration:
 * ChallengeConfig
 */
export const ChallengeConfig = z.strictObject({ bodyPath: DotPath, value: z.string(), replyPath: DotPath });
export type ChallengeConfig = z.infer<typeof ChallengeConfig>;

const asyncOnly = (field: string) =>
  `"${field}" is for async webhooks: the sender of a synchronous one gets the handler's outcome and retries itself. Add "async": true or remove it`;

const SYNC_ONLY = [
  [
    'reply',
    '"reply": "handler" is for synchronous webhooks: the sender of an async one is answered before the handler runs',
  ],
  [
    'ackAfterMs',
    '"ackAfterMs" is for synchronous webhooks: an async one is answered before its handler runs',
  ],
] as const;

/**
 * Declaration of a webhook. Fields that the spec does not define are documented in docs/webhooks.md. @spec Webhook
 * declaration
 */
export const WebhookHandlerDecl = z
  .strictObject({
    event: EventName,
    handler: HandlerRef,
    description: z.string().optional(),
    auth: WebhookAuthConfig,
    ...ReceiveOptions,
    multi: z.boolean().default(false),
    async: z.boolean().default(false),
    challenge: ChallengeConfig.optional(),
    /**
     * Location of the idempotency key, as a dot path into the body or as `header:<name>`. The header form is an
     * extension of the spec.
     */
    idempotencyKey: z
      .string()
      .min(1)
      .max(256)
      .refine(
        (path) => !/^headers?\./i.test(path),
        'is a path into the body and cannot read headers; write "header:<name>"',
      )
      .optional(),
    onProvision: HandlerRef.optional(),
    maxBodyBytes: PositiveInt.max(64 * 1024 * 1024).default(LIMITS.webhookBodyBytes),
    rateLimit: z
      .strictObject({ requestsPerMinute: PositiveInt.default(LIMITS.webhookRequestsPerMinute) })
      .default({ requestsPerMinute: LIMITS.webhookRequestsPerMinute }),
    timeoutMs: PositiveInt.optional(),
    /**
     * Retry policy for failed deliveries of an async webhook. A delivery whose last attempt fails gets the status
     * `dead`.
     */
    retry: WebhookRetry.optional(),
    /**
     * Maximum number of deliveries in flight per namespace and webhook instance. Only async webhooks can set this
     * limit.
     */
    concurrency: PositiveInt.max(1000).optional(),
    /**
     * Dot path into the body. Async deliveries with the same value at this path are handled in the order of their
     * arrival.
     */
    orderBy: DotPath.optional(),
    /** Path of a JSON file in the plugin. `svc webhooks send` uses the file as the request body. */
    sample: z.string().min(1).max(512).optional(),
  })
  .superRefine((webhook, context) => {
    if (webhook.async) {
      for (const [field, message] of SYNC_ONLY) {
        if (webhook[field] !== undefined && webhook[field] !== 'platform')
          context.addIssue({ code: 'custom', path: [field], message });
      }
      return;
    }
    for (const field of ['retry', 'concurrency', 'orderBy'] as const) {
      if (webhook[field] !== undefined)
        context.addIssue({ code: 'custom', path: [field], message: asyncOnly(field) });
    }
  });
export type WebhookHandlerDecl = z.infer<typeof WebhookHandlerDecl>;
