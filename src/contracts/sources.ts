import { z } from 'zod';
import { SecretRef } from './adapters.ts';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { EventName, type PluginId } from './ids.ts';
import { PROVIDER_IDS } from './provider-ids.ts';
import { QueueName } from './queue-settings.ts';
import { BodyFormat, MediaType } from './webhook-answers.ts';
import { IpAllow, WebhookAuthConfig } from './webhook-auth.ts';
import { WebhookRetry } from './webhook-declaration.ts';

/** Plugin id under which the deliveries of sources are recorded. No plugin may have this id. */
export const SOURCES_PLUGIN_ID = 'sources' as PluginId;

export const MAX_DESTINATIONS = 50;
const TOO_MANY = `must have at most ${MAX_DESTINATIONS} destinations`;
const MAX_EXPRESSION_CHARS = 4096;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_RULE = 'must start with a letter or digit and contain at most 64 letters, digits and . _ -';

/** Name of a source. Recorded deliveries have this name as their event. */
export const SourceName = z.string().regex(NAME, NAME_RULE).pipe(EventName);
export type SourceName = z.infer<typeof SourceName>;

/** Name of a destination within its source. */
export const DestinationName = z.string().regex(NAME, NAME_RULE);

/** An unguessable token in the URL, for senders that sign nothing. */
const TokenAuth = z.strictObject({ type: z.literal('token'), ipAllow: IpAllow.optional() });

/** Method by which a source authenticates its sender. */
export const SourceAuth = z
  .union([TokenAuth, WebhookAuthConfig])
  .refine((auth) => auth.type !== 'custom', 'a source has no plugin, so it cannot have a custom validator');
export type SourceAuth = z.infer<typeof SourceAuth>;

const Expression = z.string().min(1).max(MAX_EXPRESSION_CHARS);

const ForwardUrl = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .refine((url) => {
    const { username, password } = new URL(url);
    return username === '' && password === '';
  }, 'must not contain a user or password');

/** Place to which a destination hands deliveries over. Exactly one field is set. */
const target = {
  forward: ForwardUrl.optional().describe('URL that receives the original request'),
  workflow: z.string().min(1).max(256).optional().describe('Id of the workflow to run'),
  queue: QueueName.optional().describe('Queue that keeps deliveries for programs'),
  command: z
    .string()
    .max(343)
    .regex(/^(?:@[^/]+\/)?[^/@]+\/[^/]+$/, 'must be "<plugin>/<command>"')
    .optional()
    .describe('Command of a plugin, as "<plugin>/<command>"'),
};
export const TARGET_KINDS = ['forward', 'workflow', 'queue', 'command'] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

const settings = {
  filter: Expression.nullable().describe('CEL over headers, body, source and event; null: every delivery'),
  transform: Expression.nullable().describe('CEL whose value replaces the body; null: the body as received'),
  retry: WebhookRetry.nullable().describe('Null: the default of the kind'),
  concurrency: z.number().int().min(1).max(1000).nullable().describe('Attempts in flight; null: 4'),
  orderBy: z.string().min(1).max(256).nullable().describe('Dot path into the body. Equal values keep order'),
  timeoutMs: z.number().int().min(100).max(600_000).nullable().describe('Time of an attempt; null: 30 s'),
};

const ONE_TARGET = `set exactly one of ${TARGET_KINDS.join(', ')}`;
const targetCount = (value: Partial<Record<TargetKind, unknown>>): number =>
  TARGET_KINDS.filter((kind) => value[kind] !== undefined).length;

/** A destination as it is stored. */
export const DestinationSettings = z.strictObject({ ...target, ...settings });
export type DestinationSettings = z.infer<typeof DestinationSettings>;

/** A destination of the config, whose absent settings have their defaults. */
export const DeclaredDestination = z
  .strictObject({ ...target, ...z.strictObject(settings).partial().shape })
  .refine((value) => targetCount(value) === 1, ONE_TARGET);
export type DeclaredDestination = z.infer<typeof DeclaredDestination>;

const sourceSettings = {
  description: z.string().max(500).optional(),
  body: BodyFormat.optional().describe("Default: the provider's format, or JSON"),
  contentTypes: z.array(MediaType).min(1).max(16).optional(),
  idempotencyKey: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe('Dot path into the body, or "header:<name>". Default: the delivery id of the provider'),
  requestsPerMinute: z.number().int().positive().max(1_000_000).optional(),
};

const sender = {
  provider: z.enum(PROVIDER_IDS).optional().describe('Provider of the catalogue'),
  auth: SourceAuth.optional().describe('Instead of a provider'),
};
const ONE_SENDER = 'set either "provider" or "auth"';

/** Settings of a source, without its name. */
export const SourceSettings = z.strictObject({ ...sender, ...sourceSettings });
export type SourceSettings = z.infer<typeof SourceSettings>;

/** `auth` of a declared source. The schema of the config file does not repeat the schemas of all types. */
const DeclaredAuth = z.looseObject({ type: z.string() }).superRefine((auth, context) => {
  for (const { path, message } of SourceAuth.safeParse(auth).error?.issues ?? [])
    context.addIssue({ code: 'custom', path: [...path], message });
});

/** A source that `svc.config.json` declares. */
export const DeclaredSource = z
  .strictObject({
    ...SourceSettings.shape,
    auth: DeclaredAuth.optional(),
    secret: SecretRef.optional(),
    destinations: z
      .record(DestinationName, DeclaredDestination)
      .refine((named) => Object.keys(named).length <= MAX_DESTINATIONS, TOO_MANY)
      .default({}),
  })
  .refine((value) => (value.provider === undefined) !== (value.auth === undefined), ONE_SENDER);
export type DeclaredSource = z.infer<typeof DeclaredSource>;

export const DestinationCounts = z.object({
  accepted: z.number().int().describe('Waiting or running'),
  retrying: z.number().int(),
  succeeded: z.number().int(),
  failed: z.number().int(),
  dead: z.number().int(),
  filtered: z.number().int().describe('Not delivered, because the filter did not match'),
});
export type DestinationCounts = z.infer<typeof DestinationCounts>;

export const Destination = z
  .object({
    name: z.string(),
    ...target,
    forward: z.string().optional().describe('URL, without the values of its query'),
    ...settings,
    retry: WebhookRetry.describe('Retry policy in effect'),
    concurrency: z.number().int(),
    timeoutMs: z.number().int(),
    paused: z.boolean(),
    counts: DestinationCounts.optional(),
  })
  .meta({ id: 'Destination' });
export type Destination = z.infer<typeof Destination>;

export const Source = z
  .object({
    name: z.string(),
    description: z.string().nullable(),
    provider: z.string().nullable(),
    auth: z.string().describe('Type of the authentication'),
    url: z.string().describe('URL for the sender; a token in it is shown as "…"'),
    protects: z
      .object({ body: z.boolean(), url: z.boolean(), time: z.boolean(), sender: z.boolean() })
      .nullable()
      .describe('What the scheme of the provider protects; null: not known'),
    provisioned: z.boolean(),
    rotatedAt: z.number().nullable(),
    paused: z.boolean(),
    declared: z
      .boolean()
      .describe('Whether svc.config.json declares the source, so that only the config changes it'),
    createdAt: z.number().nullable(),
    destinations: z.array(Destination),
  })
  .meta({ id: 'Source' });
export type Source = z.infer<typeof Source>;

const secretReply = {
  url: z.string().describe('URL for the sender. With a token, it is shown only in this reply'),
  secret: z.string().describe('Empty if there is none, or if the request contained it'),
};
const Secret = z.string().max(8192).optional().describe('Secret from the sender; default: a generated one');

const tags = ['sources'];
const params = z.object({ name: SourceName });
const destinationParams = z.object({ name: SourceName, destination: DestinationName });
const readErrors = ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'] as const;
const changeErrors = [...readErrors, 'FORBIDDEN', 'NOT_FOUND', 'CONFLICT'] as const;

export const createSource = endpoint({
  method: 'POST',
  path: '/api/v1/sources',
  summary: 'Create a source; its secret is shown only once',
  tags,
  status: 201,
  body: z
    .strictObject({ name: SourceName, ...SourceSettings.shape, secret: Secret })
    .refine((body) => (body.provider === undefined) !== (body.auth === undefined), ONE_SENDER),
  reply: Source.extend(secretReply),
  errors: changeErrors,
});

export const listSources = endpoint({
  method: 'GET',
  path: '/api/v1/sources',
  summary: 'List the sources of the namespace with their destinations',
  tags,
  query: z.strictObject({
    cursor: z.string().max(256).optional(),
    limit: z.coerce.number().int().min(1).max(500).default(100),
  }),
  reply: page(Source),
  errors: readErrors,
});

export const getSource = endpoint({
  method: 'GET',
  path: '/api/v1/sources/:name',
  summary: 'Show a source, with counts of the newest deliveries by destination',
  tags,
  params,
  reply: Source.extend({
    counted: z.object({
      deliveries: z.number().int(),
      complete: z.boolean().describe('False if only the newest 1,000 deliveries were counted'),
    }),
  }),
  errors: [...readErrors, 'NOT_FOUND'],
});

/** Changes settings of a source. The fields that are not given keep their value. */
export const updateSource = endpoint({
  method: 'PATCH',
  path: '/api/v1/sources/:name',
  summary: 'Change settings of a source',
  tags,
  params,
  body: z
    .strictObject(SourceSettings.shape)
    .refine((body) => body.provider === undefined || body.auth === undefined, ONE_SENDER),
  reply: Source,
  errors: changeErrors,
});

export const deleteSource = endpoint({
  method: 'DELETE',
  path: '/api/v1/sources/:name',
  summary: 'Delete a source with its destinations and its secret',
  tags,
  params,
  reply: z.object({ deleted: z.literal(true) }),
  errors: changeErrors,
});

export const rotateSource = endpoint({
  method: 'POST',
  path: '/api/v1/sources/:name/rotate',
  summary: 'Replace the secret or the token of a source; the previous one is accepted for 24 hours',
  tags,
  params,
  body: z.strictObject({ secret: Secret }),
  reply: z.object(secretReply),
  errors: changeErrors,
});

export const connectSource = endpoint({
  method: 'POST',
  path: '/api/v1/sources/:name/destinations',
  summary: 'Connect a source to a destination',
  tags,
  status: 201,
  params,
  body: z
    .strictObject({
      name: DestinationName.optional(),
      ...target,
      ...z.strictObject(settings).partial().shape,
    })
    .refine((body) => targetCount(body) === 1, ONE_TARGET),
  reply: Destination,
  errors: changeErrors,
});

export const updateDestination = endpoint({
  method: 'PATCH',
  path: '/api/v1/sources/:name/destinations/:destination',
  summary: 'Change settings of a destination',
  tags,
  params: destinationParams,
  body: z
    .strictObject({ ...target, ...z.strictObject(settings).partial().shape })
    .refine((body) => targetCount(body) <= 1, ONE_TARGET),
  reply: Destination,
  errors: changeErrors,
});

export const disconnectSource = endpoint({
  method: 'DELETE',
  path: '/api/v1/sources/:name/destinations/:destination',
  summary: 'Disconnect a destination; its waiting deliveries end as failed',
  tags,
  params: destinationParams,
  reply: z.object({ deleted: z.literal(true) }),
  errors: changeErrors,
});

const pauseBody = z.strictObject({ destination: DestinationName.optional().describe('Default: the source') });

export const pauseSource = endpoint({
  method: 'POST',
  path: '/api/v1/sources/:name/pause',
  summary: 'Pause a source or one destination; deliveries are accepted and held',
  tags,
  params,
  body: pauseBody,
  reply: z.object({ paused: z.literal(true) }),
  errors: changeErrors,
});

export const resumeSource = endpoint({
  method: 'POST',
  path: '/api/v1/sources/:name/resume',
  summary: 'Resume a source or one destination, starting with held deliveries',
  tags,
  params,
  body: pauseBody,
  reply: z.object({ paused: z.literal(false) }),
  errors: changeErrors,
});

/** Delivers a received request again, to all destinations or to one. */
export const replaySource = endpoint({
  method: 'POST',
  path: '/api/v1/sources/:name/replay',
  summary: 'Deliver a received request again, to all destinations or to one',
  tags,
  status: 202,
  params,
  body: z.strictObject({ webhookId: z.uuid(), destination: DestinationName.optional() }),
  reply: z.object({ webhookId: z.string(), replayOf: z.string() }),
  errors: [...changeErrors, 'DELIVERY_NOT_FOUND', 'WEBHOOK_NOT_FOUND'],
});
