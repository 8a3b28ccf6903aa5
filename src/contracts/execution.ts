import { z } from 'zod';
import { HandlerRef } from './ids.ts';
import { Permissions, SchemaRef } from './plugin-manifest.ts';

/** Which kind of caller runs a handler; a handler made for another one fails with HOST_MISMATCH. */
export const HostKind = z.enum(['rest', 'webhook', 'cli', 'workflow', 'job', 'validator', 'plugin']);
export type HostKind = z.infer<typeof HostKind>;

/** The HTTP request of a delivery. */
const WebhookRequest = z.object({
  method: z.string(),
  /** As sent, without the query. */
  path: z.string(),
  /** A parameter that was sent several times has all its values. */
  query: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
  /** Names in lower case; values of a header that was sent several times are joined by `, `. */
  headers: z.record(z.string(), z.string()),
});
export type WebhookRequest = z.infer<typeof WebhookRequest>;

/**
 * What a webhook handler learns of its delivery. Its headers are those of the request without cookies and without those
 * that authenticate the sender. @spec Webhook handler context
 */
export const WebhookHostContext = WebhookRequest.extend({
  host: z.literal('webhook'),
  event: z.string(),
  namespaceId: z.string(),
  webhookId: z.string(),
  source: z.string(),
  payload: z.unknown(),
  instanceId: z.string().optional(),
});
export type WebhookHostContext = z.infer<typeof WebhookHostContext>;

/** What a webhook's validator learns of the request it judges: every header as it came. */
export const ValidatorHostContext = WebhookRequest.extend({
  host: z.literal('validator'),
  event: z.string(),
  namespaceId: z.string(),
  webhookId: z.string(),
  source: z.string(),
  instanceId: z.string().optional(),
});
export type ValidatorHostContext = z.infer<typeof ValidatorHostContext>;

/** What a route handler learns of its request. @spec Plugin routes 1, 7 */
export const RestHostContext = z.object({
  host: z.literal('rest'),
  method: z.string(),
  path: z.string(),
  requestId: z.string(),
});
export type RestHostContext = z.infer<typeof RestHostContext>;

/** One call of one handler, the same for every host and every backend. */
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
  /** The span of this execution, and the one it was made from. */
  spanId: z.string().optional(),
  parentSpanId: z.string().optional(),
  config: z.record(z.string(), z.unknown()),
  permissions: Permissions,
  schemas: z.object({ input: SchemaRef.optional(), output: SchemaRef.optional() }),
  timeoutMs: z.number().int().positive(),
});
export type ExecutionRequest = z.infer<typeof ExecutionRequest>;
