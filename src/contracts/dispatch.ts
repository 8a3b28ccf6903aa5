import { z } from 'zod';
import { CommandResult } from './command-result.ts';
import { endpoint } from './endpoint.ts';
import { HostKind } from './execution.ts';
import { HandlerRef } from './handler-ref.ts';
import { HostTarget } from './host-target.ts';
import { NamespaceId, PluginId } from './ids.ts';
import { Permissions, SchemaRef } from './plugin-manifest.ts';

const Id = z.string().min(1).max(128);

/**
 * Request to execute a plugin's handler. The gateway adds the plugin's folder, version and config. `permissions`
 * selects one of the permission sets in the manifest. @spec Internal dispatch; docs/decisions/0041
 */
export const DispatchRequest = z.object({
  executionId: Id.optional().describe('Generated if omitted; an id runs only once'),
  plugin: z.object({ id: PluginId }),
  handler: HandlerRef,
  host: HostKind.default('cli'),
  hostContext: z.record(z.string(), z.unknown()).default({}),
  input: z.unknown().optional(),
  params: z.record(z.string(), z.string()).default({}),
  user: z.object({ hostId: z.string(), namespaceId: z.string() }).nullable().default(null),
  tenantId: NamespaceId.optional().describe('Default: "default"; a container may only name its own'),
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
      'Accept a stream: if the handler returns one, the response is its bytes with its content type and X-Svc-Stream; a failure midway closes the connection',
    ),
  tellsBegun: z
    .boolean()
    .default(false)
    .describe(
      'Answer 102 when the handler starts, then the result; until then the call waits in the queue without a time limit',
    ),
  target: HostTarget.optional().describe('For plugins that run on hosts'),
});
export type DispatchRequest = z.infer<typeof DispatchRequest>;

/**
 * Executes a handler for a platform service. Callers authenticate with the internal secret instead of a Bearer token.
 * Callers without this secret get 403. @spec Authentication 6
 */
export const internalDispatch = endpoint({
  method: 'POST',
  path: '/internal/dispatch',
  summary: 'Run a handler on the backend configured for its plugin',
  body: DispatchRequest,
  reply: z.object({ executionId: z.string(), result: CommandResult }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN', 'PLUGIN_NOT_FOUND', 'INVALID_HANDLER', 'HOST_UNAVAILABLE'],
});
