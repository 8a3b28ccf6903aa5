import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { SECRET_NAME } from './secret-name.ts';

/** Name of a secret within its namespace. */
export const SecretName = z
  .string()
  .regex(new RegExp(`^${SECRET_NAME}$`), 'must start with A-Z and contain at most 64 of A-Z, 0-9 and _');
export type SecretName = z.infer<typeof SecretName>;

/** Shorter values cannot be masked in logs and records without masking ordinary words. */
export const MIN_SECRET_CHARS = 8;
export const MAX_SECRET_BYTES = 64 * 1024;
/** Versions whose metadata is kept. Only the newest version has a value. */
export const MAX_SECRET_VERSIONS = 20;
export const MAX_SECRETS = 1000;
const MAX_RESOLVED = 100;

const time = z.number().int();

export const SecretValue = z
  .string()
  .min(
    MIN_SECRET_CHARS,
    `must have at least ${MIN_SECRET_CHARS} characters: shorter values cannot be masked in logs`,
  )
  .refine(
    (value) => new TextEncoder().encode(value).length <= MAX_SECRET_BYTES,
    `must have at most ${MAX_SECRET_BYTES} bytes`,
  )
  .refine((value) => value.trim() !== '', 'must not be blank')
  .refine(
    (value) => value.isWellFormed() && !value.includes('\0'),
    'must be valid Unicode without NUL characters',
  );

export const SecretVersion = z.object({
  version: z.number().int(),
  createdAt: time,
  createdBy: z.string(),
});

export const Secret = z
  .object({
    name: z.string(),
    version: z.number().int().describe('Newest version, the only one with a value'),
    createdAt: time.describe('When the newest version was set'),
    createdBy: z.string(),
    lastUsedAt: time.nullable().describe('To the hour'),
    expiresAt: time.nullable().describe('When the value stops working at its service; for alerts only'),
    versions: z.array(SecretVersion).describe('Newest first'),
  })
  .meta({ id: 'Secret' });
export type Secret = z.infer<typeof Secret>;

const tags = ['secrets'];
const params = z.object({ name: SecretName });

export const listSecrets = endpoint({
  method: 'GET',
  path: '/api/v1/secrets',
  summary: 'List the secrets of the namespace, without values',
  tags,
  query: NoFilters,
  reply: page(Secret),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

export const setSecret = endpoint({
  method: 'PUT',
  path: '/api/v1/secrets/:name',
  summary: 'Set a new version of a secret; its value cannot be read again',
  tags,
  params,
  body: z.strictObject({
    value: SecretValue,
    expiresAt: time.min(0).nullable().default(null).describe('In epoch ms'),
  }),
  reply: Secret,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'QUOTA_EXCEEDED', 'RATE_LIMIT_EXCEEDED'],
});

export const revokeSecret = endpoint({
  method: 'DELETE',
  path: '/api/v1/secrets/:name',
  summary: 'Delete a secret with all its versions',
  tags,
  params,
  reply: z.object({ revoked: z.literal(true) }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMIT_EXCEEDED'],
});

/** Returns values to the other services, which authenticate with the service key. Unknown names are left out. */
export const resolveSecrets = endpoint({
  method: 'POST',
  path: '/internal/secrets/resolve',
  summary: 'Read the values of secrets of the namespace',
  body: z.strictObject({
    names: z.array(SecretName).min(1).max(MAX_RESOLVED),
    isUse: z.boolean().default(true).describe('Whether `lastUsedAt` changes'),
  }),
  reply: z.object({ items: z.array(z.object({ name: z.string(), value: z.string() })) }),
  errors: ['UNAUTHORIZED', 'VALIDATION_ERROR'],
});
