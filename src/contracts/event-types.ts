import { z } from 'zod';
import { NoFilters } from './common.ts';
import { endpoint } from './endpoint.ts';
import { ApplicationId, EventType } from './message-records.ts';
import { MessageIdempotencyKey } from './messages.ts';

/** Maximum number of event types in one manifest. */
export const MAX_EVENT_TYPES = 200;

export const DeclaredEventType = z
  .object({
    type: z.string(),
    description: z.string().nullable(),
    schema: z.record(z.string(), z.unknown()).nullable().describe('JSON Schema of the data'),
    pluginId: z.string().describe('The plugin that declares it'),
  })
  .meta({ id: 'DeclaredEventType' });
export type DeclaredEventType = z.infer<typeof DeclaredEventType>;

/** Lists the event types that plugins declare in `events` of their manifests. @spec docs/emit.md */
export const listEventTypes = endpoint({
  method: 'GET',
  path: '/api/v1/event-types',
  summary: 'List the event types that plugins declare',
  tags: ['messages'],
  query: NoFilters,
  reply: z.object({ items: z.array(DeclaredEventType) }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

/** Options of a message that a plugin emits. */
export const EmitFields = {
  idempotencyKey: MessageIdempotencyKey.optional(),
  application: ApplicationId.optional(),
};

/** Stores a message that a plugin emits in the namespace of the call. Services call it for `ctx.emit`. */
export const emitMessage = endpoint({
  method: 'POST',
  path: '/internal/plugins/:pluginId/messages',
  params: z.object({ pluginId: z.string().min(1).max(256) }),
  body: z.strictObject({
    type: EventType,
    data: z.json(),
    ...EmitFields,
    keepsFirst: z
      .boolean()
      .default(false)
      .describe('Whether a message with the same key and other content counts as a duplicate'),
  }),
  reply: z.object({ id: z.string(), duplicate: z.boolean() }),
  errors: [
    ...(['VALIDATION_ERROR', 'UNAUTHORIZED', 'PERMISSION_DENIED', 'PLUGIN_NOT_FOUND'] as const),
    ...(['PAYLOAD_TOO_LARGE', 'CONFLICT', 'SERVICE_UNAVAILABLE'] as const),
  ],
});

/**
 * Stores a message that the end of a run sends. The workflow service calls it.
 * @spec docs/workflows.md "When a run has ended"
 */
export const emitRunMessage = endpoint({
  method: 'POST',
  path: '/internal/runs/messages',
  body: z.strictObject({
    type: EventType,
    data: z.json(),
    application: ApplicationId.optional(),
    idempotencyKey: MessageIdempotencyKey,
  }),
  reply: z.object({ id: z.string() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'PAYLOAD_TOO_LARGE', 'SERVICE_UNAVAILABLE'],
});
