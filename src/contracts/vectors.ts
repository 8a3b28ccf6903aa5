import { z } from 'zod';
import { endpoint } from './endpoint.ts';

// Endpoints for vectors of plugins, which the state service stores.
const params = z.object({
  namespace: z.string().min(1).max(256),
  collection: z.string().regex(/^[\w.:-]{1,128}$/, 'must be one word of letters, digits and . _ : -'),
});

/**
 * Maximum number of vector dimensions. Common embedding models use fewer dimensions. Larger vectors do not fit into the
 * chunks of sqlite-vec.
 */
export const MAX_DIMENSIONS = 4096;
const Vector = z.array(z.number()).min(1).max(MAX_DIMENSIONS);
const ItemId = z.string().min(1).max(512);
const Metadata = z
  .record(z.string().min(1).max(128), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .refine((metadata) => JSON.stringify(metadata).length <= 16 * 1024, 'must be at most 16 KB as JSON');

const tags = ['vectors'];

/** Inserts vectors and replaces existing vectors with the same id. @spec docs/decisions/0053 */
export const upsertVectors = endpoint({
  method: 'PUT',
  path: '/api/v1/vectors/:namespace/:collection',
  summary: 'Insert or replace vectors atomically',
  tags,
  params,
  body: z.strictObject({
    items: z
      .array(z.strictObject({ id: ItemId, vector: Vector, metadata: Metadata.default({}) }))
      .min(1)
      .max(500),
  }),
  reply: z.object({ written: z.number().int() }),
  errors: ['VALIDATION_ERROR', 'QUOTA_EXCEEDED', 'ADAPTER_NOT_CONFIGURED'],
});

export const searchVectors = endpoint({
  method: 'POST',
  path: '/api/v1/vectors/:namespace/:collection/search',
  summary: 'Find the nearest vectors by cosine similarity',
  tags,
  params,
  body: z.strictObject({
    vector: Vector,
    limit: z.number().int().min(1).max(1000).default(10),
    minScore: z.number().min(-1).max(1).optional(),
    filter: Metadata.default({}),
  }),
  reply: z.object({
    matches: z.array(z.object({ id: z.string(), score: z.number(), metadata: Metadata })),
  }),
  errors: ['VALIDATION_ERROR', 'ADAPTER_NOT_CONFIGURED'],
});

export const deleteVectors = endpoint({
  method: 'POST',
  path: '/api/v1/vectors/:namespace/:collection/delete',
  summary: 'Delete vectors by id',
  tags,
  params,
  body: z.strictObject({ ids: z.array(ItemId).min(1).max(1000) }),
  reply: z.object({ deleted: z.number().int() }),
});
