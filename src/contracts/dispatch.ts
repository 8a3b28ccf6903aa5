import { z } from 'zod';
import { CommandResult } from './command-result.ts';
import { endpoint } from './endpoint.ts';
import { HostKind } from './execution.ts';
import { HostTarget } from './host-target.ts';
import { HandlerRef, NamespaceId, PluginId } from './ids.ts';
import { Permissions, SchemaRef } from './plugin-manifest.ts';

const Id = z.string().min(1).max(128);

/**
 * The execution request of every backend. Only the plugin's id and the handler must be there. The plugin's folder,
 * version and config are never taken from here but from the gateway's own registry and configuration; `permissions`
 * only choose among the sets that the manifest itself declares for the handler.
 * @spec Internal dispatch; docs/decisions/0041
 */
export const DispatchRequest = z.object({
  executionId: Id.optional().describe('Made when left out; one id runs once'),
  plugin: z.object({ id: PluginId }),
  handler: HandlerRef,
  host: HostKind.default('cli'),
  hostContext: z.record(z.string(), z.unknown()).default({}),
  input: z.unknown().optional(),
  params: z.record(z.string(), z.string()).default({}),
  user: z.object({ hostId: z.string(), namespaceId: z.string() }).nullable().default(null),
  tenantId: NamespaceId.optional().describe('Default: "default"; a container acts for its own alone'),
  requestId: Id.optional(),
  traceId: Id.optional(),
  permissions: Permissions.optional(),
  schemas: z.object({ input: SchemaRef.optional(), output: SchemaRef.optional() }).default({}),
  timeoutMs: z
    .number()
    .int()
    .positive()
    .max(24 * 3600_000)
    .optional(),
  streams: z
    .boolean()
    .default(false)
    .describe(
      'Take a stream: where the handler returns one, the answer is its bytes under its content type, with X-Svc-Stream; a failure in the middle cuts the connection',
    ),
  tellsBegun: z
    .boolean()
    .default(false)
    .describe(
      'Answer 102 when the handler begins, then the result; until then the call waits for its turn, however long that takes',
    ),
  target: HostTarget.optional().describe('For plugins that run on hosts'),
});
export type DispatchRequest = z.infer<typeof DispatchRequest>;

/** Shown the internal secret instead of a Bearer token; 403 otherwise. @spec Authentication 6 */
export const internalDispatch = endpoint({
  method: 'POST',
  path: '/internal/dispatch',
  summary: 'Run a handler where the config says its plugin runs',
  body: DispatchRequest,
  reply: z.object({ executionId: z.string(), result: CommandResult }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN', 'PLUGIN_NOT_FOUND', 'INVALID_HANDLER', 'HOST_UNAVAILABLE'],
});
