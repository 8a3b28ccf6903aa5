import { z } from 'zod';
import { SecretRef } from './adapters.ts';
import { BodyFormat, MediaType } from './body-format.ts';
import { EventName } from './ids.ts';
import { PROVIDER_IDS } from './provider-ids.ts';
import { QueueName } from './queue-settings.ts';
import { WebhookRetry } from './webhook-retry.ts';

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

const Expression = z.string().min(1).max(MAX_EXPRESSION_CHARS);

const ForwardUrl = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .refine((url) => {
    const { username, password } = new URL(url);
    return username === '' && password === '';
  }, 'must not contain a user or password');

/** Place to which a destination hands deliveries over. Exactly one field is set. */
export const destinationTarget = {
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

export const destinationSettings = {
  filter: Expression.nullable().describe('CEL over headers, body, source and event; null: every delivery'),
  transform: Expression.nullable().describe('CEL whose value replaces the body; null: the body as received'),
  retry: WebhookRetry.nullable().describe('Null: the default of the kind'),
  concurrency: z.number().int().min(1).max(1000).nullable().describe('Attempts in flight; null: 4'),
  orderBy: z.string().min(1).max(256).nullable().describe('Dot path into the body. Equal values keep order'),
  timeoutMs: z.number().int().min(100).max(600_000).nullable().describe('Time of an attempt; null: 30 s'),
};

export const ONE_TARGET = `set exactly one of ${TARGET_KINDS.join(', ')}`;
export const targetCount = (value: Partial<Record<TargetKind, unknown>>): number =>
  TARGET_KINDS.filter((kind) => value[kind] !== undefined).length;

/** A destination as it is stored. */
export const DestinationSettings = z.strictObject({ ...destinationTarget, ...destinationSettings });
export type DestinationSettings = z.infer<typeof DestinationSettings>;

/** A destination of the config, whose absent settings have their defaults. */
export const DeclaredDestination = z
  .strictObject({ ...destinationTarget, ...z.strictObject(destinationSettings).partial().shape })
  .refine((value) => targetCount(value) === 1, ONE_TARGET);
export type DeclaredDestination = z.infer<typeof DeclaredDestination>;

export const sourceSettings = {
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

export const sourceProvider = z.enum(PROVIDER_IDS).optional().describe('Provider of the catalogue');
export const ONE_SENDER = 'set either "provider" or "auth"';

/** A source that `svc.config.json` declares. */
export const DeclaredSource = z
  .strictObject({
    provider: sourceProvider,
    // The gateway checks `auth` at its start. Every command loads this file, and should not load all types of `auth`.
    auth: z.looseObject({ type: z.string() }).optional(),
    ...sourceSettings,
    secret: SecretRef.optional(),
    destinations: z
      .record(DestinationName, DeclaredDestination)
      .refine((named) => Object.keys(named).length <= MAX_DESTINATIONS, TOO_MANY)
      .default({}),
  })
  .refine((value) => (value.provider === undefined) !== (value.auth === undefined), ONE_SENDER);
export type DeclaredSource = z.infer<typeof DeclaredSource>;
