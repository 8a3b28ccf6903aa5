import { z } from 'zod';
import { HandlerRef } from './handler-ref.ts';
import { Permissions, SchemaRef } from './plugin-manifest.ts';

/** Kinds of callers of a handler. A call fails with HOST_MISMATCH if the handler does not support its caller's kind. */
export const HostKind = z.enum(['rest', 'webhook', 'cli', 'workflow', 'job', 'validator', 'plugin']);
export type HostKind = z.infer<typeof HostKind>;

/** The HTTP request that delivered a webhook event. */
const WebhookRequest = z.object({
  method: z.string(),
  /** The request path as received, without the query. */
  path: z.string(),
  /** Query parameters. The value of a repeated parameter is an array. */
  query: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
  /** Headers with lower-case names. The values of a repeated header are joined with `, `. */
  headers: z.record(z.string(), z.string()),
});
export type WebhookRequest = z.infer<typeof WebhookRequest>;

/**
 * Host context of a webhook handler. `headers` omits cookies and the sender's credentials. @spec Webhook handler
 * context
 */
export const WebhookHostContext = WebhookRequest.extend({
  host: z.literal('webhook'),
  event: z.string(),
  namespaceId: z.string(),
  webhookId: z.string(),
  source: z.string(),
  payload: z.unknown(),
  /** Content type of the body. Like `raw`, only for webhooks with `body` or `contentTypes`. */
  contentType: z.string().optional(),
  /** The body as received, in base64. */
  raw: z.string().optional(),
  instanceId: z.string().optional(),
});
export type WebhookHostContext = z.infer<typeof WebhookHostContext>;

/** Host context of a webhook's validator. The context contains all headers as received. */
export const ValidatorHostContext = WebhookRequest.extend({
  host: z.literal('validator'),
  event: z.string(),
  namespaceId: z.string(),
  webhookId: z.string(),
  source: z.string(),
  instanceId: z.string().optional(),
});
export type ValidatorHostContext = z.infer<typeof ValidatorHostContext>;

/** Host context of a route handler. @spec Plugin routes 1, 7 */
export const RestHostContext = z.object({
  host: z.literal('rest'),
  method: z.string(),
  path: z.string(),
  requestId: z.string(),
});
export type RestHostContext = z.infer<typeof RestHostContext>;

/** Call of a handler. The format is the same for all callers and all execution backends. */
export const ExecutionRequest = z.object({
  executionId: z.string(),
  plugin: z.object({ id: z.string(), version: z.string(), root: z.string() }),
  handler: HandlerRef,
  host: HostKind,
  hostContext: z.record(z.string(), z.unknown()),
  input: z.unknown(),
  params: z.record(z.string(), z.string()),
  user: z.object({ hostId: z.string(), namespaceId: z.string() }).nullable(),
  tenantId: z.string(),
  requestId: z.string(),
  traceId: z.string(),
  spanId: z.string().optional(),
  parentSpanId: z.string().optional(),
  config: z.record(z.string(), z.unknown()),
  permissions: Permissions,
  schemas: z.object({ input: SchemaRef.optional(), output: SchemaRef.optional() }),
  timeoutMs: z.number().int().positive(),
});
export type ExecutionRequest = z.infer<typeof ExecutionRequest>;
