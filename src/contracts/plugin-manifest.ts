import { z } from 'zod';
import { ConnectionName } from './connection-settings.ts';
import { MAX_EVENT_TYPES } from './event-types.ts';
import { HandlerRef } from './handler-ref.ts';
import { PluginId } from './ids.ts';
import { McpExposure } from './mcp-exposure.ts';
import { McpOffers } from './mcp-offers.ts';
import { McpServer } from './mcp-servers.ts';
import { EventType } from './message-records.ts';
import { SecretName } from './secrets.ts';
import { WebhookHandlerDecl } from './webhook-declaration.ts';
import { CodeWorkflowDefinition, WorkflowDefinition } from './workflow-definition.ts';
import type { PluginSchedule } from './workflow-starts.ts';

const PositiveInt = z.number().int().positive();

/**
 * A reference to a schema: `{zod: "<package>#<export>"}` or `{$ref: "<file>#<pointer>"}`. @spec Plugin REST route
 * declaration
 */
export const SchemaRef = z.union([
  z.strictObject({ zod: z.string().regex(/^[^#]+#[A-Za-z_$][\w$]*$/, 'must be "<package>#<export>"') }),
  z.strictObject({ $ref: z.string().min(1) }),
]);
export type SchemaRef = z.infer<typeof SchemaRef>;

/**
 * Authentication method that a route accepts. If a route lists several methods, a request must satisfy one of these
 * methods. @spec Plugin REST route declaration; docs/plugins.md "Routes"
 */
export const Security = z.enum(['none', 'user', 'token', 'oauth']);
export type Security = z.infer<typeof Security>;

const FsPaths = z.array(z.string().min(1)).default([]);

const permissions = z.strictObject({
  fs: z.strictObject({ read: FsPaths, write: FsPaths }).optional(),
  /**
   * Hosts that `ctx.fetch` is allowed to call. An entry is a host name, `host:port` or a pattern such as
   * `*.example.com`. `["*"]` also permits raw sockets.
   */
  network: z
    .array(
      z
        .string()
        .min(1)
        .refine((host) => !host.includes('://'), 'must be a host such as "api.example.com", not a URL'),
    )
    .default([]),
  /** Names of the environment variables that the plugin is allowed to read. */
  env: z.array(z.string().min(1)).default([]),
  /** Names of the tenant's secrets that `ctx.secrets.get` returns. */
  secrets: z.array(SecretName).max(100).optional(),
  /** Names of the tenant's connections whose access tokens `ctx.connections` returns. */
  connections: z.array(ConnectionName).max(100).optional(),
  platform: z
    .strictObject({
      state: z.boolean().default(true),
      cache: z.boolean().default(true),
      dispatch: z.boolean().default(false),
      /** `sandboxed` allows programs only inside bubblewrap or a container. Elsewhere the plugin does not start. */
      childProcess: z.union([z.boolean(), z.literal('sandboxed')]).default(false),
      storage: z.boolean().default(false),
      llm: z.boolean().default(false),
      embeddings: z.boolean().default(false),
      vectorStore: z.boolean().default(false),
      /** Allows the plugin to start, read, cancel and signal workflow runs of the tenant. */
      workflows: z.boolean().default(false),
      /** Allows the plugin to submit its own jobs and the jobs that `invoke` lists. */
      jobs: z.boolean().default(false),
      /** Allows the plugin to read the URLs of its own webhooks. */
      webhooks: z.boolean().default(false),
      /** Allows the plugin to emit messages of the types that `events` declares. */
      emit: z.boolean().default(false),
    })
    .optional(),
  invoke: z.array(z.string().min(1)).default([]),
  quotas: z
    .strictObject({
      timeoutMs: PositiveInt.optional(),
      memoryMb: PositiveInt.min(32).optional(),
      /**
       * Maximum concurrent executions per process. If the limit is above 1, a crash ends all executions of the process.
       */
      concurrency: PositiveInt.max(1000).optional(),
      /**
       * Maximum number of executions that wait for a process. Further executions are rejected with 503 and Retry-After.
       */
      queue: z.number().int().min(0).max(10_000).optional(),
    })
    .optional(),
});
type PermissionsShape = typeof permissions;
export interface PermissionsSchema extends PermissionsShape {}
/**
 * Permissions of plugin code. `platform.state` and `platform.cache` are granted by default. All other permissions must
 * be declared. @spec Plugin REST route declaration: permissions
 */
export const Permissions: PermissionsSchema = permissions;
export type Permissions = z.infer<typeof Permissions>;

/** Declaration of a REST route in the plugin manifest. @spec Plugin REST route declaration */
export const RouteDecl = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
  path: z
    .string()
    .regex(
      /^(?!(?:.*\/)?\.{1,2}(?:\/|$))\/?(?:[A-Za-z0-9._~-]+|:[A-Za-z_]\w*)?(?:\/(?:[A-Za-z0-9._~-]+|:[A-Za-z_]\w*))*$/,
      'must be a literal path such as "/issues/:number"',
    )
    // Adds a missing leading slash, because all paths are relative to `basePath`.
    .overwrite((path) => (path.startsWith('/') ? path : `/${path}`)),
  handler: HandlerRef,
  description: z.string().optional(),
  timeoutMs: PositiveInt.optional(),
  input: SchemaRef.optional(),
  output: SchemaRef.optional(),
  errors: z
    .array(
      z.strictObject({
        code: z.string().min(1),
        http: z.number().int().min(400).max(599),
        description: z.string().optional(),
      }),
    )
    .default([]),
  security: z.array(Security).min(1).optional(),
  permissions: Permissions.optional(),
});
export type RouteDecl = z.infer<typeof RouteDecl>;

export const RestDecl = z.strictObject({
  basePath: z
    .string()
    .regex(
      /^(?!.*\/\.{1,2}(?:\/|$))\/v1\/plugins\/[A-Za-z0-9@._~%-]+(?:\/[A-Za-z0-9@._~%-]+)*$/,
      'must start with "/v1/plugins/" and name the plugin',
    ),
  defaults: z
    .strictObject({ timeoutMs: PositiveInt.optional(), security: z.array(Security).min(1).optional() })
    .default({}),
  security: z.array(Security).min(1).optional(),
  routes: z.array(RouteDecl),
});
type RestDecl = z.infer<typeof RestDecl>;

/**
 * Returns the authentication methods of a route, or the plugin's default methods. If neither exists, returns undefined,
 * and every caller with a token is accepted.
 */
export function routeSecurity(
  { defaults, security }: RestDecl,
  route: Pick<RouteDecl, 'security'>,
): Security[] | undefined {
  return route.security ?? defaults.security ?? security;
}

/** Name of a command or job, such as `greet` or `orders:sync`. */
const CapabilityId = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'must be one word of letters, digits and . _ : -');

/** Declaration of a command in the plugin manifest. @spec docs/plugins.md "Commands" */
export const CommandDecl = z.strictObject({
  id: CapabilityId,
  handler: HandlerRef,
  description: z.string().optional(),
  input: SchemaRef.optional(),
  output: SchemaRef.optional(),
  timeoutMs: PositiveInt.optional(),
  /** Permissions for this command, which replace the permissions of the plugin. */
  permissions: Permissions.optional(),
  /** Whether the handler is safe to execute twice. If true, a workflow repeats the command after a crash. */
  idempotent: z.boolean().default(false),
  mcp: McpExposure.optional(),
});
export type CommandDecl = z.infer<typeof CommandDecl>;

/** Declaration of a job handler in the plugin manifest. @spec docs/plugins.md "Workflows, jobs and webhooks" */
export const JobDecl = z.strictObject({
  id: CapabilityId,
  handler: HandlerRef,
  description: z.string().optional(),
  input: SchemaRef.optional(),
  timeoutMs: PositiveInt.optional(),
  /** Whether the handler is safe to execute twice. If true, a workflow repeats the job after a crash. */
  idempotent: z.boolean().default(false),
});

/** A JSON Schema in the manifest itself. */
const InlineSchema = z
  .record(z.string(), z.unknown())
  .refine((schema) => !Object.hasOwn(schema, 'zod'), 'must be a JSON Schema');

/** Declaration of an event type in the plugin manifest. @spec docs/emit.md */
export const EventDecl = z.strictObject({
  /** JSON Schema of the data, or a reference to a schema as in routes. Without it, any data is accepted. */
  schema: z.union([SchemaRef, InlineSchema]).optional(),
  description: z.string().max(1024).optional(),
});
export type EventDecl = z.infer<typeof EventDecl>;

/** Returns the reference to a schema that a declaration names, or undefined for a schema in the manifest itself. */
export function eventSchemaRef({ schema }: EventDecl): SchemaRef | undefined {
  return SchemaRef.safeParse(schema).data;
}

/** A version range in npm syntax, such as `^1.2.0`. */
const VersionRange = z.string().max(256);

export const MANIFEST_FILE = 'svc.plugin.json';

/** The manifest of a plugin, `svc.plugin.json`. @spec Versioning (ManifestV3); docs/plugins.md */
export const ManifestV3 = z.strictObject({
  $schema: z.string().optional(),
  schema: z.literal('svc.plugin/3'),
  id: PluginId,
  version: z.string().min(1).max(64),
  display: z.strictObject({ name: z.string().optional(), description: z.string().optional() }).optional(),
  engines: z.strictObject({ svc: VersionRange }).optional(),
  configSchema: z.record(z.string(), z.unknown()).optional(),
  dependencies: z.record(z.string(), VersionRange).default({}),
  permissions: Permissions.default({ network: [], env: [], invoke: [] }),
  commands: z.array(CommandDecl).default([]),
  rest: RestDecl.optional(),
  webhooks: z.array(WebhookHandlerDecl).default([]),
  // Each item is a `PluginWorkflow`. The workflow service validates the items, so that an invalid workflow does not
  // disable the plugin.
  workflows: z.array(z.record(z.string(), z.unknown())).default([]),
  jobs: z.array(JobDecl).default([]),
  mcp: McpOffers.optional(),
  // Each item is a `PluginSchedule`. The workflow service validates the items.
  schedules: z.array(z.record(z.string(), z.unknown())).default([]),
  events: z
    .record(EventType, EventDecl)
    .refine((events) => Object.keys(events).length <= MAX_EVENT_TYPES, {
      message: `has more than ${MAX_EVENT_TYPES} types`,
    })
    .default({}),
  mcpServer: McpServer.optional(),
  lifecycle: z.strictObject({ onEnable: HandlerRef.optional(), onDisable: HandlerRef.optional() }).optional(),
});
export type ManifestV3 = z.infer<typeof ManifestV3>;

/** A workflow in a manifest, defined either by steps or by code. */
export const PluginWorkflow = z.union([WorkflowDefinition, CodeWorkflowDefinition]);

/** Manifest in the form that plugin authors write, in which keys with default values are optional. */
export type PluginManifest = Omit<z.input<typeof ManifestV3>, '$schema' | 'workflows' | 'schedules'> & {
  workflows?: Array<z.input<typeof PluginWorkflow>>;
  schedules?: Array<z.input<typeof PluginSchedule>>;
};
