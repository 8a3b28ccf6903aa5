import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import type { PluginId } from './ids.ts';
import {
  DestinationName,
  destinationSettings,
  destinationTarget,
  ONE_SENDER,
  ONE_TARGET,
  SourceName,
  sourceProvider,
  sourceSettings,
  targetCount,
} from './source-config.ts';
import { IpAllow, WebhookAuthConfig } from './webhook-auth.ts';
import { WebhookRetry } from './webhook-retry.ts';

export {
  DeclaredDestination,
  DeclaredSource,
  DestinationName,
  DestinationSettings,
  MAX_DESTINATIONS,
  SourceName,
  TARGET_KINDS,
  type TargetKind,
} from './source-config.ts';

/** Plugin id under which the deliveries of sources are recorded. No plugin may have this id. */
export const SOURCES_PLUGIN_ID = 'sources' as PluginId;

/** An unguessable token in the URL, for senders that sign nothing. */
const TokenAuth = z.strictObject({ type: z.literal('token'), ipAllow: IpAllow.optional() });

const Auth = z
  .union([TokenAuth, WebhookAuthConfig])
  .refine((auth) => auth.type !== 'custom', 'a source has no plugin, so it cannot have a custom validator');
export type SourceAuth = z.infer<typeof Auth>;
export interface SourceAuthSchema extends z.ZodType<SourceAuth, z.input<typeof Auth>> {}
/** Method by which a source authenticates its sender. */
export const SourceAuth: SourceAuthSchema = Auth;

/** Settings of a source, without its name. */
export const SourceSettings = z.strictObject({
  provider: sourceProvider,
  auth: SourceAuth.optional().describe('Instead of a provider'),
  ...sourceSettings,
});
export type SourceSettings = z.infer<typeof SourceSettings>;

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
    ...destinationTarget,
    forward: z.string().optional().describe('URL, without the values of its query'),
    ...destinationSettings,
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

/** Accepts one secret that the sender hands over. @spec docs/webhooks.md "Handshakes" */
export const expectSourceSecret = endpoint({
  method: 'POST',
  path: '/api/v1/sources/:name/expect-secret',
  summary: 'Accept one secret that the sender hands over within the next minutes',
  tags,
  params,
  body: z.strictObject({ minutes: z.number().int().min(1).max(60).default(10) }).prefault({}),
  reply: z.object({ url: z.string(), expiresAt: z.number().describe('Epoch milliseconds') }),
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
      ...destinationTarget,
      ...z.strictObject(destinationSettings).partial().shape,
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
    .strictObject({ ...destinationTarget, ...z.strictObject(destinationSettings).partial().shape })
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
