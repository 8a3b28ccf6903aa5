import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';

const Namespace = z.string().min(1).max(256);
const Key = z.string().min(1).max(512);
const params = z.object({ namespace: Namespace, key: Key });
/** TTL of an entry in ms. An entry without a TTL does not expire. */
const TtlMs = z.number().int().positive().max(Number.MAX_SAFE_INTEGER);

/**
 * Any JSON value. `z.json()` is not used, because `z.json()` traverses the whole parsed value and silently drops
 * `__proto__` keys.
 */
const Json = z.unknown().refine((value) => value !== undefined, 'is required') as z.ZodType<
  z.infer<ReturnType<typeof z.json>>
>;

export const StateEntry = z
  .object({
    key: z.string(),
    value: Json,
    expiresAt: z.number().nullable().describe('Epoch milliseconds'),
  })
  .meta({ id: 'StateEntry' });

export const getState = endpoint({
  method: 'GET',
  path: '/api/v1/state/:namespace/:key',
  summary: 'Read one entry',
  tags: ['state'],
  params,
  reply: StateEntry,
  errors: ['NOT_FOUND'],
});

/** Writes an entry. If `ifAbsent` is true, an existing entry is kept and `written` is false. */
export const putState = endpoint({
  method: 'PUT',
  path: '/api/v1/state/:namespace/:key',
  summary: 'Write one entry, optionally only if absent, optionally with a TTL',
  tags: ['state'],
  params,
  body: z.strictObject({ value: Json, ttlMs: TtlMs.optional(), ifAbsent: z.boolean().default(false) }),
  reply: z.object({ written: z.boolean() }),
  errors: ['VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE', 'QUOTA_EXCEEDED'],
});

export const deleteState = endpoint({
  method: 'DELETE',
  path: '/api/v1/state/:namespace/:key',
  summary: 'Delete one entry',
  tags: ['state'],
  params,
  reply: z.object({ deleted: z.boolean() }),
});

/**
 * Adds to a counter atomically. If `windowMs` is set, the counter restarts from 0 that many ms after its first
 * increment.
 */
export const incrementState = endpoint({
  method: 'POST',
  path: '/api/v1/state/:namespace/:key/increment',
  summary: 'Add to a counter atomically, optionally within a window',
  tags: ['state'],
  params,
  body: z.strictObject({ by: z.number().int().default(1), windowMs: TtlMs.optional() }),
  reply: z.object({ value: z.number(), resetsAt: z.number().nullable() }),
  errors: ['CONFLICT', 'QUOTA_EXCEEDED'],
});

export const listState = endpoint({
  method: 'GET',
  path: '/api/v1/state/:namespace',
  summary: 'List entries by key prefix, in key order',
  tags: ['state'],
  params: z.object({ namespace: Namespace }),
  query: z.strictObject({
    prefix: z.string().max(512).default(''),
    cursor: z.string().max(1024).optional(),
    limit: z.coerce.number().int().min(1).max(1000).default(100),
  }),
  reply: page(StateEntry),
});
