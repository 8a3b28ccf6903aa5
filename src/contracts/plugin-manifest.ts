import { z } from 'zod';
import { EventName, HandlerRef, PluginId } from './ids.ts';
import { LIMITS } from './limits.ts';
import { CodeWorkflowDefinition, type PluginSchedule, WorkflowDefinition } from './workflow-definition.ts';

const PositiveInt = z.number().int().positive();
const DotPath = z.string().min(1).max(256);

/** How a webhook proves its sender. @spec Webhook declaration: WebhookAuthConfig */
export const WebhookAuthConfig = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('secret'), header: z.string().min(1) }),
  z.strictObject({
    type: z.literal('hmac'),
    header: z.string().min(1),
    algorithm: z.literal('sha256').default('sha256'),
    prefix: z.string().default(''),
    encoding: z.enum(['hex', 'base64']).default('hex'),
  }),
  z.strictObject({ type: z.literal('custom'), validator: HandlerRef }),
  /** An extension: the scheme of a known sender, by its public documents. */
  z.strictObject({
    type: z.literal('provider'),
    provider: z.enum(['github', 'stripe', 'slack', 'shopify', 'standard-webhooks']),
    /** How far a signed timestamp may lie in the past or the future. */
    toleranceSeconds: PositiveInt.max(3600).default(LIMITS.webhookToleranceSeconds),
  }),
]);
export type WebhookAuthConfig = z.infer<typeof WebhookAuthConfig>;

/** @spec Webhook declaration: ChallengeConfig */
export const ChallengeConfig = z.strictObject({ bodyPath: DotPath, value: z.string(), replyPath: DotPath });
export type ChallengeConfig = z.infer<typeof ChallengeConfig>;

/** Exponential: `initialMs`, times `factor` each time, at most `maxMs`; a fifth of it is left to chance. */
export const WebhookRetry = z.strictObject({
  /** Runs in all, the first one included. */
  maxAttempts: PositiveInt.min(2).max(100),
  backoff: z
    .strictObject({
      initialMs: PositiveInt.default(1000),
      factor: z.number().min(1).max(10).default(2),
      maxMs: PositiveInt.max(24 * 3600_000).default(3600_000),
    })
    .prefault({}),
});
export type WebhookRetry = z.infer<typeof WebhookRetry>;

const asyncOnly = (field: string) =>
  `"${field}" is for async webhooks: the sender of a synchronous one gets the handler's outcome and decides itself; add "async": true or leave it out`;

/** @spec Webhook declaration; the last five fields are extensions (docs/webhooks.md) */
export const WebhookHandlerDecl = z
  .strictObject({
    event: EventName,
    handler: HandlerRef,
    description: z.string().optional(),
    auth: WebhookAuthConfig,
    multi: z.boolean().default(false),
    async: z.boolean().default(false),
    challenge: ChallengeConfig.optional(),
    /** A dot-path into the body, or `header:<name>` (an extension). */
    idempotencyKey: z
      .string()
      .min(1)
      .max(256)
      .refine(
        (path) => !/^headers?\./i.test(path),
        'is a path into the body and never reaches headers; write "header:<name>"',
      )
      .optional(),
    onProvision: HandlerRef.optional(),
    maxBodyBytes: PositiveInt.max(64 * 1024 * 1024).default(LIMITS.webhookBodyBytes),
    rateLimit: z
      .strictObject({ requestsPerMinute: PositiveInt.default(LIMITS.webhookRequestsPerMinute) })
      .default({ requestsPerMinute: LIMITS.webhookRequestsPerMinute }),
    timeoutMs: PositiveInt.optional(),
    /** Async only: runs a failed delivery again; when all attempts failed it is `dead`. */
    retry: WebhookRetry.optional(),
    /** Async only: how many deliveries of a namespace run at a time. */
    concurrency: PositiveInt.max(1000).optional(),
    /** Async only: a dot-path into the body; deliveries with one value run one after the other, as they came. */
    orderBy: DotPath.optional(),
    /** A JSON file of the plugin: what `svc webhooks send` sends. */
    sample: z.string().min(1).max(512).optional(),
  })
  .superRefine((webhook, context) => {
    if (webhook.async) return;
    for (const field of ['retry', 'concurrency', 'orderBy'] as const) {
      if (webhook[field] !== undefined)
        context.addIssue({ code: 'custom', path: [field], message: asyncOnly(field) });
    }
  });
export type WebhookHandlerDecl = z.infer<typeof WebhookHandlerDecl>;

/** `{zod: "<package>#<export>"}` or `{$ref: "<file>#<pointer>"}`. @spec Plugin REST route declaration */
export const SchemaRef = z.union([
  z.strictObject({ zod: z.string().regex(/^[^#]+#[A-Za-z_$][\w$]*$/, 'must be "<package>#<export>"') }),
  z.strictObject({ $ref: z.string().min(1) }),
]);
export type SchemaRef = z.infer<typeof SchemaRef>;

/** Who may call a route; any listed one suffices. @spec Plugin REST route declaration; docs/plugins.md "Routes" */
export const Security = z.enum(['none', 'user', 'token', 'oauth']);
export type Security = z.infer<typeof Security>;

const FsPaths = z.array(z.string().min(1)).default([]);

/** What a plugin may touch; nothing unless listed. @spec Plugin REST route declaration: permissions */
export const Permissions = z.strictObject({
  fs: z.strictObject({ read: FsPaths, write: FsPaths }).optional(),
  /** Hosts that `ctx.fetch` may call, `*.example.com` and `host:port` allowed; `["*"]` also opens raw sockets. */
  network: z
    .array(
      z
        .string()
        .min(1)
        .refine((host) => !host.includes('://'), 'must be a host such as "api.example.com", not a URL'),
    )
    .default([]),
  /** Names of environment variables the plugin sees. */
  env: z.array(z.string().min(1)).default([]),
  platform: z
    .strictObject({
      state: z.boolean().default(true),
      cache: z.boolean().default(true),
      dispatch: z.boolean().default(false),
      childProcess: z.boolean().default(false),
      storage: z.boolean().default(false),
      llm: z.boolean().default(false),
      embeddings: z.boolean().default(false),
      vectorStore: z.boolean().default(false),
      /** Starts, reads, cancels and signals runs of the tenant. */
      workflows: z.boolean().default(false),
      /** Submits the plugin's own jobs, and those that `invoke` lists. */
      jobs: z.boolean().default(false),
      /** Reads where the plugin's own webhooks are. */
      webhooks: z.boolean().default(false),
    })
    .optional(),
  invoke: z.array(z.string().min(1)).default([]),
  quotas: z
    .strictObject({
      timeoutMs: PositiveInt.optional(),
      memoryMb: PositiveInt.min(32).optional(),
      /** Calls one process runs at a time; above 1, a crash takes the neighbours with it. */
      concurrency: PositiveInt.max(1000).optional(),
      /** Calls that may wait for a process; beyond it 503 with Retry-After. */
      queue: z.number().int().min(0).max(10_000).optional(),
    })
    .optional(),
});
export type Permissions = z.infer<typeof Permissions>;

/** @spec Plugin REST route declaration */
export const RouteDecl = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
  path: z
    .string()
    .regex(
      /^(?!(?:.*\/)?\.{1,2}(?:\/|$))\/?(?:[A-Za-z0-9._~-]+|:[A-Za-z_]\w*)?(?:\/(?:[A-Za-z0-9._~-]+|:[A-Za-z_]\w*))*$/,
      'must be a literal path such as "/issues/:number"',
    )
    // Relative to `basePath` either way.
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

/** Security of a route: its own, else the plugin's default. Undefined: any caller with a token. */
export function routeSecurity(
  { defaults, security }: RestDecl,
  route: Pick<RouteDecl, 'security'>,
): Security[] | undefined {
  return route.security ?? defaults.security ?? security;
}

/** A command's or job's name within the platform: `greet`, `orders:sync`. */
const CapabilityId = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'must be one word of letters, digits and . _ : -');

/** @spec docs/plugins.md "Commands" */
export const CommandDecl = z.strictObject({
  id: CapabilityId,
  handler: HandlerRef,
  description: z.string().optional(),
  input: SchemaRef.optional(),
  output: SchemaRef.optional(),
  timeoutMs: PositiveInt.optional(),
  /** Replaces the plugin's permissions entirely for this command. */
  permissions: Permissions.optional(),
  /** A second run does no harm: a workflow runs it again when a crash caught it in mid-air. */
  idempotent: z.boolean().default(false),
});
export type CommandDecl = z.infer<typeof CommandDecl>;

/** @spec docs/plugins.md "Workflows, jobs and webhooks" */
export const JobDecl = z.strictObject({
  id: CapabilityId,
  handler: HandlerRef,
  description: z.string().optional(),
  input: SchemaRef.optional(),
  timeoutMs: PositiveInt.optional(),
  /** A second run does no harm: a workflow runs it again when a crash caught it in mid-air. */
  idempotent: z.boolean().default(false),
});

/** Such as `^1.2.0`. */
const VersionRange = z.string().max(256);

export const MANIFEST_FILE = 'svc.plugin.json';

/** A plugin's `svc.plugin.json`. @spec Versioning (ManifestV3); docs/plugins.md */
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
  /** Each a `PluginWorkflow`; a faulty one is told by the workflow service, which leaves out that one alone. */
  workflows: z.array(z.record(z.string(), z.unknown())).default([]),
  jobs: z.array(JobDecl).default([]),
  /** Each a `PluginSchedule`; likewise. */
  schedules: z.array(z.record(z.string(), z.unknown())).default([]),
  lifecycle: z.strictObject({ onEnable: HandlerRef.optional(), onDisable: HandlerRef.optional() }).optional(),
});
export type ManifestV3 = z.infer<typeof ManifestV3>;

/** A workflow of a manifest, in steps or in code. */
export const PluginWorkflow = z.union([WorkflowDefinition, CodeWorkflowDefinition]);

/** A manifest as an author writes it: what has a default may be left out. */
export type PluginManifest = Omit<z.input<typeof ManifestV3>, '$schema' | 'workflows' | 'schedules'> & {
  workflows?: Array<z.input<typeof PluginWorkflow>>;
  schedules?: Array<z.input<typeof PluginSchedule>>;
};
